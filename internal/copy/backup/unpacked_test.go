package backup

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"testing"

	"github.com/varve-db/varve/errs"
)

// opening is a reader that decrypts: the bytes from 100 on cannot be decrypted.
type opening struct{ below io.ReaderAt }

func (o opening) ReadAt(b []byte, off int64) (int, error) {
	n, err := o.below.ReadAt(b, off)
	if err != nil {
		return n, fmt.Errorf("reading a piece: %w", err)
	}
	if off >= 100 {
		return 0, errors.New("authentication failed")
	}
	return n, nil
}

// unreadable is a file whose first bytes cannot be read.
type unreadable struct{ io.ReaderAt }

func (u unreadable) ReadAt(b []byte, off int64) (int, error) {
	if off < 10 {
		return 0, fs.ErrPermission
	}
	return u.ReaderAt.ReadAt(b, off)
}

// TestUnsealedErrors verifies that a read of a sealed backup that fails is not taken for damage, and damage not for a
// failed read, when both happen at the same time.
func TestUnsealedErrors(t *testing.T) {
	t.Parallel()
	u := &unsealed{opening{failing{unreadable{bytes.NewReader(make([]byte, 200))}}}, "b"}
	var all sync.WaitGroup
	for range 4 {
		for off, want := range map[int64]error{0: fs.ErrPermission, 20: nil, 150: errs.ErrCorrupt} {
			all.Go(func() {
				for range 200 {
					_, err := u.ReadAt(make([]byte, 4), off)
					if !errors.Is(err, want) || errors.Is(err, errs.ErrCorrupt) != (want == errs.ErrCorrupt) {
						t.Errorf("at %d: %v", off, err)
					}
				}
			})
		}
	}
	all.Wait()
}
