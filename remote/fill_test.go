package remote_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/iotest"

	"github.com/varve-db/varve/remote"
)

// Only io.EOF ends a stream.
func TestFill(t *testing.T) {
	t.Parallel()
	b := make([]byte, 4)
	text := func() io.Reader { return bytes.NewReader([]byte("abcdef")) }
	for _, r := range []io.Reader{text(), iotest.OneByteReader(text()), iotest.DataErrReader(text())} {
		if n, end, err := remote.Fill(r, b); n != 4 || end || err != nil || string(b) != "abcd" {
			t.Error(n, end, err)
		}
		if n, end, err := remote.Fill(r, b); n != 2 || !end || err != nil || string(b[:2]) != "ef" {
			t.Error(n, end, err)
		}
	}
	for _, broken := range []error{io.ErrUnexpectedEOF, fmt.Errorf("reading: %w", io.EOF)} {
		r := io.MultiReader(bytes.NewReader([]byte("abc")), iotest.ErrReader(broken))
		if n, end, err := remote.Fill(r, b); n != 3 || end || !errors.Is(err, broken) {
			t.Error(n, end, err)
		}
	}
}
