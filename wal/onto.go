package wal

import (
	"cmp"
	"slices"
	"sync"

	"github.com/varve-db/varve/segment"
)

// onTop calls Batch.OnTop after a precondition on the key of a batch's only entry has failed. OnTop can change the
// entry so that it follows the newest entry of the key, and the batch then does not fail with a conflict. pos is the
// position of that newest entry, and i is the index of the failed precondition. onTop reports whether the batch's
// entry was changed. The caller holds append.lock and state.mu, so no other entry of the key can come in between.
//
// If the newest entry is below the position Flushed, onTop returns false, because the document file may have been
// edited by hand since.
func (l *FileLog) onTop(g *group, r *request, i int, pos LSN) bool {
	b := r.batch
	if b.OnTop == nil || len(b.Entries) != 1 || pos < l.shared.Flushed() || b.Preconditions[i].Key != b.Entries[0].Key {
		return false
	}
	newest, err := l.entryAt(g, pos)
	if err != nil || newest.Key != b.Entries[0].Key || newest.Delete {
		return false
	}
	if !r.callUnlessGone(&l.q, func() bool { return b.OnTop(&newest) }) {
		return false
	}
	e := &b.Entries[0]
	if r.size = segment.FrameSize(uint64(len(e.Key) + len(e.Value))); r.size > l.Limit() ||
		uint64(e.Inflated) > l.Limit() {
		return false
	}
	b.Preconditions[i] = Precondition{Key: e.Key, LSN: pos}
	return true
}

// entryAt returns the entry at pos. The entry may be in the group, in the list of entries that are not applied
// yet, or in the log.
func (l *FileLog) entryAt(g *group, pos LSN) (Entry, error) {
	for _, list := range [][]Entry{g.entries, l.state.ahead} {
		if n, ok := find(list, pos); ok {
			return list[n], nil
		}
	}
	return l.readAt(pos)
}

// find returns the index of the entry at pos in a list that is sorted by position, and reports whether the list
// has such an entry.
func find(list []Entry, pos LSN) (int, bool) {
	return slices.BinarySearchFunc(list, pos, func(e Entry, at LSN) int { return cmp.Compare(e.LSN, at) })
}

// preparing is a mutex. A goroutine locks it while it calls OnTop or Written of a batch, because these functions use
// the caller's data. When the ctx of Append has ended, Append locks the mutex once, to wait until no such call is
// running.
type preparing struct{ sync.Mutex }

// callUnlessGone calls f unless the caller of Append has stopped waiting. It reports whether f was called and
// returned true.
func (r *request) callUnlessGone(q *queue, f func() bool) bool {
	r.preparing.Lock()
	defer r.preparing.Unlock()
	q.mu.Lock()
	gone := r.gone
	q.mu.Unlock()
	return !gone && f()
}

// ended blocks until no goroutine is calling OnTop or Written of the request's batch. The caller must have set gone, so
// that no such call begins later.
func (r *request) ended() {
	r.preparing.Lock()
	//lint:ignore SA2001 it waits for who has it
	r.preparing.Unlock()
}
