package wal

import (
	"bytes"
	"context"
	"strings"
)

// Ahead returns a copy of the newest entry of a key if that entry is in the log but this process has not applied it
// yet, usually because the entry is not durable yet. Otherwise ok is false. The entry may be a deletion. sole reports
// whether the entry is the only one of its batch. If it is not, the other entries of the batch are visible only after
// this process has applied them.
//
// Until the entry is durable (see Settle), the caller must not return anything to its user that depends on the entry.
// A batch that is based on the entry comes after it in the log, so after a crash the log never has the later batch
// without the earlier entry.
func (l *FileLog) Ahead(ctx context.Context, key string) (e Entry, sole, ok bool) {
	l.state.mu.Lock()
	defer l.state.mu.Unlock()
	if err := l.advance(ctx, l.shared.Tail(), l.shared.Durable()); err != nil {
		return Entry{}, false, false // the caller then reads durable data, which reports the error
	}
	at, ok := l.state.pending[key]
	if !ok {
		return Entry{}, false, false
	}
	n, ok := find(l.state.ahead, at)
	if !ok {
		return Entry{}, false, false
	}
	e = l.state.ahead[n]
	e.Key, e.Value = strings.Clone(e.Key), bytes.Clone(e.Value)
	return e, !e.More && (n == 0 || !l.state.ahead[n-1].More), true
}

// AnyAhead reports whether f returns true for an entry that this process has read from the log, or written to it, but
// has not applied yet. f is called while the log is locked: it must be quick, and must not keep the entry.
func (l *FileLog) AnyAhead(f func(e *Entry) bool) bool {
	l.state.mu.Lock()
	defer l.state.mu.Unlock()
	for i := range l.state.ahead {
		if f(&l.state.ahead[i]) {
			return true
		}
	}
	return false
}

// Written returns the position up to which the log is written. The part before this position may have been written by
// any process, and may not be durable yet.
func (l *FileLog) Written() LSN { return l.shared.Tail() }

// Settle blocks until the entry at pos is durable and applied.
func (l *FileLog) Settle(ctx context.Context, pos LSN) error {
	if err := l.syncTo(ctx, pos+1); err != nil {
		return err
	}
	if err := l.keeps(pos + 1); err != nil {
		return err
	}
	return l.CatchUp(ctx)
}

// needsEarlyAnswer reports whether Batch.Written is set: the caller of Append wants to continue before its batch
// is durable. Append then also returns a conflict at once, even a conflict with an entry that is not durable yet.
// Until that entry is durable, the caller must not tell its user anything that follows from the conflict.
func (b *Batch) needsEarlyAnswer() bool { return b.Written != nil }

// written is called after the group was written to the log. It calls the function Batch.Written of each accepted batch
// that has one. It also answers each refused request that need not wait for the sync, except own, the request of the
// calling goroutine.
func (l *FileLog) written(g *group, own *request) {
	kept := g.requests[:0]
	for _, r := range g.requests {
		if r.err == nil && r.batch.needsEarlyAnswer() {
			r.callUnlessGone(&l.q, func() bool { r.batch.Written(); return true })
		}
		if r != own && r.err != nil && r.end == 0 {
			r.wake <- wakeDone
			continue
		}
		kept = append(kept, r)
	}
	g.requests = kept
}
