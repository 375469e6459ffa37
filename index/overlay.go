package index

import (
	"hash/maphash"
	"iter"
	"sort"
	"sync"
)

// Overlay is an index in memory of what changed since the index files were written: it has the position of the
// newest version of each changed key. It stores two 64-bit hashes of a key instead of the key, so a reader
// that follows a position must compare the key found there. One goroutine puts and drops; any number of
// goroutines get.
//
//	changes, in LSN order       chunk 0: [entry … ] chunk 1: [entry … ] …
//	  entry, 24 bytes           first hash │ second hash │ position and two flags
//	lookup, 256 open tables     slots of 4+1 bytes: the sequence number of a key's
//	                            newest entry, 0 is free; a byte of its hash
//
// A newer version is a new entry at the end. The previous entry is flagged and skipped, and removed when such
// entries outnumber the others. Tables grow one at a time, so no Put moves more than 1/256 of the slots.
type Overlay struct {
	mu     sync.RWMutex
	hash   func(kind byte, id string) (uint64, uint64)
	chunks []*overlayChunk
	first  uint32 // sequence number of chunks[0][0]; it may wrap around
	head   int    // number of dropped entries in chunks[0]
	n      int    // number of entries in the chunks, including dropped ones
	live   int    // number of keys
	last   uint64 // highest position passed to Put
	tables [overlayTables]slotTable
}

const (
	overlayTables = 256
	chunkLen      = 1024

	flagDeleted    = 1 << 63
	flagSuperseded = 1 << 62
	posMask        = flagSuperseded - 1
)

type overlayEntry struct{ h1, h2, pos uint64 }

type overlayChunk [chunkLen]overlayEntry

// NewOverlay returns an empty overlay. Its hashes are seeded at random, so that ids cannot be chosen to collide.
func NewOverlay() *Overlay {
	s1, s2 := maphash.MakeSeed(), maphash.MakeSeed()
	return newOverlay(func(kind byte, id string) (uint64, uint64) {
		k := uint64(kind) * 0x9e3779b97f4a7c15
		return maphash.String(s1, id) ^ k, maphash.String(s2, id) + k
	})
}

func newOverlay(hash func(byte, string) (uint64, uint64)) *Overlay {
	return &Overlay{hash: hash, first: 1}
}

// Put records that the newest version of a key is at pos, which must be below 1<<62. deleted means that this version
// is a deletion. Positions must rise. A position not above the last one is a repetition, as in a replay: then Put
// changes nothing and returns false.
func (o *Overlay) Put(kind byte, id string, pos uint64, deleted bool) bool {
	h1, h2 := o.hash(kind, id)
	o.mu.Lock()
	defer o.mu.Unlock()
	if pos <= o.last || pos > posMask {
		return false
	}
	o.last = pos
	if deleted {
		pos |= flagDeleted
	}
	seq := o.append(overlayEntry{h1, h2, pos})
	t := &o.tables[h1>>56]
	if at := t.find(o, h1, h2); at >= 0 {
		o.at(t.slots[at]).pos |= flagSuperseded
		t.slots[at] = seq
	} else {
		t.insert(o, h1, seq)
		o.live++
	}
	if o.n-o.head > 2*o.live+chunkLen {
		o.sweep()
	}
	return true
}

// Get returns the position of the newest version of a key, and whether this version is a deletion. ok is false if the
// key is not in the overlay.
func (o *Overlay) Get(kind byte, id string) (pos uint64, deleted, ok bool) {
	h1, h2 := o.hash(kind, id)
	o.mu.RLock()
	defer o.mu.RUnlock()
	t := &o.tables[h1>>56]
	at := t.find(o, h1, h2)
	if at < 0 {
		return 0, false, false
	}
	p := o.at(t.slots[at]).pos
	return p & posMask, p&flagDeleted != 0, true
}

// DropBelow removes the versions at positions below spilled, because the index files now contain these versions.
// Before the call, the caller must make the new set of files current: a reader that does not find a version in the
// overlay looks in the files.
func (o *Overlay) DropBelow(spilled uint64) {
	for o.dropSome(spilled) {
	}
}

// dropSome removes entries at positions below spilled, at most one chunk of them, so that readers never wait long
// for the lock. more reports whether further such entries remain.
func (o *Overlay) dropSome(spilled uint64) (more bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for range chunkLen {
		if o.head == o.n || o.entry(o.head).pos&posMask >= spilled {
			break
		}
		e := o.entry(o.head)
		if e.pos&flagSuperseded == 0 {
			o.tables[e.h1>>56].remove(o, e.h1, e.h2)
			o.live--
		}
		if o.head++; o.head == chunkLen {
			o.chunks[0] = nil
			o.chunks = o.chunks[1:]
			o.first += chunkLen
			o.head = 0
			o.n -= chunkLen
		}
	}
	if o.live == 0 { // release the memory; only superseded entries are left
		o.chunks, o.head, o.n, o.first = nil, 0, 0, 1
		o.tables = [overlayTables]slotTable{}
	}
	return o.head < o.n && o.entry(o.head).pos&posMask < spilled
}

// Len returns the number of keys in the overlay.
func (o *Overlay) Len() int {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.live
}

// At is one change in an overlay: the position of a version, and whether this version is a deletion.
type At struct {
	Pos     uint64
	Deleted bool
}

// Changes yields, in LSN order, the newest version of each key that changed at a position in [from, to). If a key has
// a newer version at or above the position to, Changes does not yield the key; a later call with a higher end does.
// The cost is proportional to the number of changes since from. Changes that Put makes meanwhile may or may not be
// yielded. DropBelow must not run during the iteration.
func (o *Overlay) Changes(from, to uint64) iter.Seq[At] {
	return func(yield func(At) bool) {
		var batch [256]At
		for {
			n := o.collect(batch[:], from, to)
			for _, a := range batch[:n] {
				if !yield(a) {
					return
				}
			}
			if n < len(batch) {
				return
			}
			from = batch[n-1].Pos + 1
		}
	}
}

// collect copies changes at positions in [from, to) to dst, at most len(dst) of them, and returns their number. It
// holds the lock only while it copies, so that the caller processes the changes without the lock.
func (o *Overlay) collect(dst []At, from, to uint64) (n int) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	at := o.head + sort.Search(o.n-o.head, func(i int) bool { return o.entry(o.head+i).pos&posMask >= from })
	for ; at < o.n && n < len(dst); at++ {
		p := o.entry(at).pos
		if p&posMask >= to {
			break
		}
		if p&flagSuperseded == 0 {
			dst[n] = At{Pos: p & posMask, Deleted: p&flagDeleted != 0}
			n++
		}
	}
	return n
}

// append adds an entry and returns its sequence number, which is never 0.
func (o *Overlay) append(e overlayEntry) uint32 {
	if o.first+uint32(o.n) == 0 { // once in four billion
		o.push(overlayEntry{pos: e.pos | flagSuperseded})
	}
	seq := o.first + uint32(o.n)
	o.push(e)
	return seq
}

func (o *Overlay) push(e overlayEntry) {
	if o.n == len(o.chunks)*chunkLen {
		o.chunks = append(o.chunks, new(overlayChunk))
	}
	*o.entry(o.n) = e
	o.n++
}

func (o *Overlay) entry(i int) *overlayEntry { return &o.chunks[i/chunkLen][i%chunkLen] }

func (o *Overlay) at(seq uint32) *overlayEntry { return o.entry(int(seq - o.first)) }

// sweep removes the entries of the overlay that newer ones of the same key have replaced.
func (o *Overlay) sweep() {
	old, head, n := o.chunks, o.head, o.n
	o.chunks, o.head, o.n, o.first = nil, 0, 0, 1
	o.tables = [overlayTables]slotTable{}
	for i := head; i < n; i++ {
		e := old[i/chunkLen][i%chunkLen]
		if e.pos&flagSuperseded == 0 {
			seq := o.append(e)
			o.tables[e.h1>>56].insert(o, e.h1, seq)
		}
		if i%chunkLen == chunkLen-1 {
			old[i/chunkLen] = nil
		}
	}
}
