package remote

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/varve-db/varve/internal/vfs"
)

// Fetch reads bytes of a snapshot. data are bytes of the snapshot that include the byte at the offset at, and begin is
// the offset at which data begins. want is the number of bytes from the offset at on that the caller can use, at least
// 1.
type Fetch func(ctx context.Context, at, want int64) (data []byte, begin int64, err error)

// NewBody returns a Body of size bytes that fetch reads. Fetch is called by one goroutine at a time. The Body keeps the
// part that was fetched last, so that many small reads in order need few calls. The context of fetch ends when ctx ends
// or the Body is closed.
func NewBody(ctx context.Context, size int64, fetch Fetch) Body {
	ctx, cancel := context.WithCancel(ctx)
	return &body{ctx: ctx, cancel: cancel, size: size, fetch: fetch}
}

type body struct {
	ctx    context.Context
	cancel context.CancelFunc
	size   int64
	fetch  Fetch

	mu    sync.Mutex
	begin int64 // offset of data
	data  []byte
}

// Size returns the number of bytes of the snapshot.
func (b *body) Size() int64 { return b.size }

// Close cancels the calls of fetch that are running.
func (b *body) Close() error {
	b.cancel()
	return nil
}

// errPart reports that a Fetch has returned other bytes than those that were requested.
var errPart = errors.New("the place returned other bytes than those that were requested")

// ReadAt reads len(p) bytes from offset off. It takes them from the part that was fetched last, and calls fetch for
// bytes that are not in this part.
func (b *body) ReadAt(p []byte, off int64) (n int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for n < len(p) {
		at := off + int64(n)
		if at < 0 || at >= b.size {
			return n, io.EOF
		}
		if at < b.begin || at >= b.begin+int64(len(b.data)) {
			data, begin, err := b.fetch(b.ctx, at, min(int64(len(p)-n), b.size-at))
			if err != nil {
				return n, err
			}
			if end := begin + int64(len(data)); begin < 0 || begin > at || end <= at || end > b.size {
				return n, fmt.Errorf("%w: %d bytes from %d, not %d", errPart, len(data), begin, at)
			}
			b.begin, b.data = begin, data
		}
		n += copy(p[n:], b.data[at-b.begin:])
	}
	return n, nil
}

// Parts reads body to its end. It calls store with each part of size bytes, of which the last one may be shorter, and
// with the number of the part, which begins with 0. store must not keep the slice. Parts returns the number of bytes
// in all parts and their SHA-256.
func Parts(body io.Reader, size int, store func(number int64, part []byte) error) (all int64, sum [32]byte, err error) {
	hash, part := sha256.New(), make([]byte, size)
	for number := int64(0); ; number++ {
		n, end, err := Fill(body, part)
		if err != nil {
			return 0, sum, err
		}
		if n > 0 {
			hash.Write(part[:n])
			if err := store(number, part[:n]); err != nil {
				return 0, sum, err
			}
			all += int64(n)
		}
		if end {
			return all, [32]byte(hash.Sum(nil)), nil
		}
	}
}

// sumStep is the maximum number of bytes that Sum reads at once.
const sumStep = 4 << 20

// Sum reads all bytes of a snapshot and returns their SHA-256. It closes b.
func Sum(ctx context.Context, b Body) (sum [32]byte, err error) {
	hash := sha256.New()
	r := vfs.Until(ctx, io.NewSectionReader(b, 0, b.Size()))
	_, err = io.CopyBuffer(hash, r, make([]byte, max(1, min(sumStep, b.Size()))))
	return [32]byte(hash.Sum(nil)), errors.Join(err, b.Close())
}
