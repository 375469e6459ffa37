package wal

import (
	"bytes"
	"context"
	"strings"
)

// Ahead returns a copy of the newest entry of a key, which may be a deletion, if that entry is written to the
// log but not yet applied by this process, usually because it is not durable yet. Otherwise ok is false. sole
// reports whether the entry is the only one of its batch; the other entries of a batch are not visible before
// they are applied.
//
// Before the entry is durable (see Settle), the caller must not return to its user anything that depends on
// the entry. A batch that builds on the entry follows it in the log, so a crash never leaves the later batch
// without the earlier one.
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

// Written returns the position up to which the log is written, no matter by which process, durable or not.
func (l *FileLog) Written() LSN { return l.shared.Tail() }

// Settle blocks until the entry at a position is durable and applied.
func (l *FileLog) Settle(ctx context.Context, at LSN) error {
	if err := l.syncTo(ctx, at+1); err != nil {
		return err
	}
	if err := l.keeps(at + 1); err != nil {
		return err
	}
	return l.CatchUp(ctx)
}

// early reports whether the caller of Append wants to continue before its batch is durable (Batch.Written is
// set). Append then also returns a conflict at once, even if it is with an entry that is not durable yet. The
// caller must not pass on anything that follows from the conflict before that entry is durable.
func (b *Batch) early() bool { return b.Written != nil }

// written calls Batch.Written for the batches of a group that have it: they are in the log now. It also answers the
// group's failed requests that need not wait for the sync.
func (l *FileLog) written(g *group, own *request) {
	kept := g.requests[:0]
	for _, r := range g.requests {
		if r.err == nil && r.batch.early() {
			r.again(&l.q, func() bool { r.batch.Written(); return true })
		}
		if r != own && r.err != nil && r.end == 0 {
			r.wake <- wakeDone
			continue
		}
		kept = append(kept, r)
	}
	g.requests = kept
}
