package wal

import (
	"cmp"
	"slices"
	"sync"

	"github.com/varve-db/varve/segment"
)

// onTop calls Batch.OnTop, so that the batch prepares its entry again, to follow the newest entry of its key,
// instead of failing with a conflict. at is the position of that newest entry, and i the index of the
// precondition that failed. onTop reports whether the batch's entry now follows the newest one. The caller holds
// append.lock and mu, so the next entry of the key comes after this batch.
//
// If the newest entry is below the position Flushed, onTop returns false, because the document file of the
// entry may have been edited.
func (l *FileLog) onTop(g *group, r *request, i int, at LSN) bool {
	b := r.batch
	if b.OnTop == nil || len(b.Entries) != 1 || at < l.shared.Flushed() || b.Preconditions[i].Key != b.Entries[0].Key {
		return false
	}
	newest, err := l.entryAt(g, at)
	if err != nil || newest.Key != b.Entries[0].Key || newest.Delete {
		return false
	}
	if !r.again(&l.q, func() bool { return b.OnTop(&newest) }) {
		return false
	}
	e := &b.Entries[0]
	if r.size = segment.FrameSize(uint64(len(e.Key) + len(e.Value))); r.size > l.Limit() ||
		uint64(e.Inflated) > l.Limit() {
		return false
	}
	b.Preconditions[i] = Precondition{Key: e.Key, LSN: at}
	return true
}

// entryAt returns the entry at a position: from the group, from the entries that are not applied yet, or from
// the log.
func (l *FileLog) entryAt(g *group, at LSN) (Entry, error) {
	for _, list := range [][]Entry{g.entries, l.state.ahead} {
		if n, ok := find(list, at); ok {
			return list[n], nil
		}
	}
	return l.readAt(at)
}

// find returns the index of the entry at a position, in a list sorted by position, and whether it is in the
// list.
func find(list []Entry, at LSN) (int, bool) {
	return slices.BinarySearchFunc(list, at, func(e Entry, at LSN) int { return cmp.Compare(e.LSN, at) })
}

// preparing lets Append, once its ctx has ended, wait until no other goroutine is preparing the batch again,
// because the preparation reads the caller's data.
type preparing struct{ sync.Mutex }

// again calls f unless the caller of Append has given up. It reports whether f was called and returned true.
func (r *request) again(q *queue, f func() bool) bool {
	r.preparing.Lock()
	defer r.preparing.Unlock()
	q.mu.Lock()
	gone := r.gone
	q.mu.Unlock()
	return !gone && f()
}

// ended blocks until no goroutine is preparing the batch of the request again. The caller has marked the
// request as gone, so no goroutine begins to prepare the batch again.
func (r *request) ended() {
	r.preparing.Lock()
	//lint:ignore SA2001 it waits for who has it
	r.preparing.Unlock()
}
