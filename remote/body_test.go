package remote_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"

	"github.com/varve-db/varve/remote"
)

// parted is a place that returns parts of up to 100 bytes, and counts its calls.
type parted struct {
	bytes []byte
	calls int
	wrong func(data []byte, begin int64) ([]byte, int64) // changes what is returned
}

func (p *parted) fetch(ctx context.Context, at, want int64) ([]byte, int64, error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	p.calls++
	begin := at / 100 * 100
	data := p.bytes[begin:min(begin+100, int64(len(p.bytes)))]
	if want < 1 || at+want > int64(len(p.bytes)) {
		return nil, 0, errors.New("more is requested than there is")
	}
	if p.wrong != nil {
		data, begin = p.wrong(data, begin)
	}
	return data, begin, nil
}

// A body has the bytes that were stored, whatever is read; what was fetched is used again.
func TestBody(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 1))
	whole := make([]byte, 1234)
	for i := range whole {
		whole[i] = byte(rng.Uint32())
	}
	p := &parted{bytes: whole}
	b := remote.NewBody(t.Context(), 1234, p.fetch)
	if err := iotest.TestReader(io.NewSectionReader(b, 0, b.Size()), whole); err != nil {
		t.Error(err)
	}
	p.calls = 0
	for i := range whole {
		var one [1]byte
		if n, err := b.ReadAt(one[:], int64(i)); n != 1 || err != nil || one[0] != whole[i] {
			t.Fatalf("byte %d: %v, %v", i, one, err)
		}
	}
	if p.calls != 13 {
		t.Errorf("%d calls for 13 parts", p.calls)
	}
	for range 500 {
		off, buf := rng.Int64N(1300), make([]byte, rng.IntN(400))
		n, err := b.ReadAt(buf, off)
		want := whole[min(off, 1234):min(off+int64(len(buf)), 1234)]
		if !bytes.Equal(buf[:n], want) || (err == io.EOF) != (n < len(buf)) || err != nil && err != io.EOF {
			t.Fatalf("%d bytes from %d: %d, %v", len(buf), off, n, err)
		}
	}
	if sum, err := remote.Sum(t.Context(), b); err != nil || sum != sha256.Sum256(whole) {
		t.Error("the sum:", err)
	}
	var one [1]byte
	if _, err := remote.NewBody(t.Context(), 0, p.fetch).ReadAt(one[:], 0); err != io.EOF {
		t.Error(err)
	}
	p.calls = 0
	// Sum has closed it.
	if _, err := b.ReadAt(make([]byte, 1234), 0); !errors.Is(err, context.Canceled) || p.calls > 0 {
		t.Errorf("a closed body: %d calls, %v", p.calls, err)
	}
	// A place that returns nothing, other bytes, or bytes beyond the end.
	for name, wrong := range map[string]func([]byte, int64) ([]byte, int64){
		"nothing":     func([]byte, int64) ([]byte, int64) { return nil, 0 },
		"before":      func(data []byte, begin int64) ([]byte, int64) { return data[:5], begin },
		"after":       func(data []byte, begin int64) ([]byte, int64) { return data, begin + 50 },
		"below zero":  func(data []byte, begin int64) ([]byte, int64) { return data, -50 },
		"beyond":      func(data []byte, begin int64) ([]byte, int64) { return make([]byte, 2000), begin },
		"the reverse": func(data []byte, begin int64) ([]byte, int64) { return data, 1300 },
	} {
		b := remote.NewBody(t.Context(), 1234, (&parted{bytes: whole, wrong: wrong}).fetch)
		if n, err := b.ReadAt(one[:], 1210); n != 0 || err == nil || err == io.EOF {
			t.Errorf("%s: %d, %v", name, n, err)
		}
	}
}

// Parts stores all bytes, in order and without an empty part, and ends at the first error.
func TestParts(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 9, 10, 11, 20, 25} {
		whole := bytes.Repeat([]byte("x"), n)
		var got []byte
		body := iotest.OneByteReader(bytes.NewReader(whole))
		size, sum, err := remote.Parts(body, 10, func(number int64, part []byte) error {
			if int(number)*10 != len(got) || len(part) == 0 {
				t.Errorf("%d bytes: part %d has %d bytes after %d", n, number, len(part), len(got))
			}
			got = append(got, part...)
			return nil
		})
		if err != nil || size != int64(n) || sum != sha256.Sum256(whole) || !bytes.Equal(got, whole) {
			t.Errorf("%d bytes: %d, %v", n, size, err)
		}
	}
	failed := errors.New("failed")
	_, _, err := remote.Parts(bytes.NewReader(make([]byte, 30)), 10, func(number int64, _ []byte) error {
		if number > 0 {
			t.Error("Parts called store again after store had returned an error")
		}
		return failed
	})
	if !errors.Is(err, failed) {
		t.Error(err)
	}
	if _, _, err := remote.Parts(iotest.ErrReader(failed), 10, nil); !errors.Is(err, failed) {
		t.Error(err)
	}
}
