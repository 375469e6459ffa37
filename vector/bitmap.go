package vector

import "sync/atomic"

// bitmap has one bit for each row. Bits are only ever set.
type bitmap []atomic.Uint64

func newBitmap(n int64) bitmap { return make(bitmap, (n+63)/64) }

func (b bitmap) set(i int64) { b[i>>6].Or(1 << (i & 63)) }

// has is false for everything where there is no bitmap.
func (b bitmap) has(i int64) bool { return b != nil && b[i>>6].Load()&(1<<(i&63)) != 0 }
