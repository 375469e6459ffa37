package remote_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/iotest"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/segment"
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

// zeros is a stream of zeros without an end.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// ReadAll returns the bytes that have arrived, whatever size was claimed, and refuses more than the limit.
func TestReadAll(t *testing.T) {
	t.Parallel()
	long := bytes.Repeat([]byte("0123456789"), 500_000)
	for _, whole := range [][]byte{nil, []byte("a"), long[:1<<20], long[:1<<20+1], long} {
		n := int64(len(whole))
		for _, claimed := range []int64{-1, n} {
			got, err := remote.ReadAll(iotest.HalfReader(bytes.NewReader(whole)), claimed, n)
			if err != nil || !bytes.Equal(got, whole) {
				t.Errorf("%d bytes of %d, claimed %d: %v", len(got), n, claimed, err)
			}
		}
		if n > 0 { // more than was claimed: the limit decides
			got, err := remote.ReadAll(bytes.NewReader(whole), n-1, n+10)
			if err != nil || !bytes.Equal(got, whole) {
				t.Errorf("%d bytes of %d: %v", len(got), n, err)
			}
			if _, err := remote.ReadAll(bytes.NewReader(whole), -1, n-1); !errors.Is(err, errs.ErrTooLarge) {
				t.Errorf("%d bytes, one less is possible: %v", n, err)
			}
		}
		if _, err := remote.ReadAll(bytes.NewReader(whole), n+1, n+1); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d bytes, one more is claimed: %v", n, err)
		}
	}
	if _, err := remote.ReadAll(zeros{}, 11, 10); !errors.Is(err, errs.ErrTooLarge) {
		t.Error("a claim beyond the limit:", err)
	}
	if _, err := remote.ReadAll(zeros{}, -1, 5<<20); !errors.Is(err, errs.ErrTooLarge) {
		t.Error("a stream without an end:", err)
	}
	broken := fmt.Errorf("reading: %w", io.EOF)
	r := io.MultiReader(bytes.NewReader(long), iotest.ErrReader(broken))
	if _, err := remote.ReadAll(r, -1, segment.MaxSize); !errors.Is(err, broken) {
		t.Error(err)
	}
}
