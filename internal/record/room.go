package record

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Maximum sizes, in bytes, of the documents that the goroutines of one store which read many documents have in
// memory at once. A single larger document is read while no other is.
const (
	roomBytes = 64 << 20
	roomFree  = 256 << 10 // maximum size of a document that does not wait and is not counted
)

// room limits the total size of the documents that a store has in memory for background work: writing files, building
// the index of words, and verifying. A goroutine takes room for one document at a time. While it has the room, it does
// not wait for a lock or for another document.
type room struct {
	once  sync.Once
	left  *semaphore.Weighted
	spare sync.Pool // unused *[]byte buffers of Lend
}

// Take blocks until there is room in memory for a document of n bytes. When the caller no longer needs the document, it
// must call give once.
func (c *Codec) Take(ctx context.Context, n int64) (give func(), err error) {
	if n <= roomFree {
		return func() {}, nil
	}
	r := &c.room
	r.once.Do(func() { r.left = semaphore.NewWeighted(roomBytes) })
	n = min(n, roomBytes)
	if err := r.left.Acquire(ctx, n); err != nil {
		return nil, err
	}
	return func() { r.left.Release(n) }, nil
}

// Lend does the same as Doc, for a document that is needed for a short time. It waits for room as Take does. The
// returned bytes are a part of the record, or are in a buffer that is reused after the caller has called give.
func (c *Codec) Lend(ctx context.Context, v *View, limit int) (doc []byte, give func(), err error) {
	if !v.zstd {
		return v.doc, func() {}, nil
	}
	if err := c.Fits(v, limit); err != nil {
		return nil, nil, err
	}
	free, err := c.Take(ctx, int64(v.size))
	if err != nil {
		return nil, nil, err
	}
	b, _ := c.room.spare.Get().(*[]byte)
	if b == nil || cap(*b) < v.size {
		fresh := make([]byte, 0, v.size)
		b = &fresh
	}
	if doc, err = c.inflate((*b)[:0], v.doc, v.size); err != nil {
		free()
		return nil, nil, err
	}
	return doc, func() { c.room.spare.Put(b); free() }, nil
}
