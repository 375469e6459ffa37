package vector

import "sync/atomic"

// bitmap is a set of rows of a FAISS file, with one bit for each row. A row can be added to the set, but not removed.
type bitmap []atomic.Uint64

func newBitmap(n int64) bitmap { return make(bitmap, (n+63)/64) }

func (b bitmap) set(i int64) { b[i>>6].Or(1 << (i & 63)) }

// has reports whether bit i is set. It returns false if the bitmap is nil.
func (b bitmap) has(i int64) bool { return b != nil && b[i>>6].Load()&(1<<(i&63)) != 0 }
