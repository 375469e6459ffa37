package wal

import (
	"bytes"
	"context"
	"strings"
)

// Ahead returns a copy of the newest entry of a key, or of the deletion of the key, if that entry is written but not
// yet applied by this process, usually because it is not durable yet. ok is false otherwise. sole reports whether the
// entry is the only one of its batch; the other entries of a batch are not visible before they are applied.
//
// The caller must not report anything that follows from the entry before the entry is durable: see Settle. A batch
// that builds on the entry follows it in the log, so a crash never leaves the later batch without the earlier one.
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

// Written returns the position up to which any process has written the log.
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

// early reports whether the caller of Append continues before its batch is durable. Such a caller gets a refusal at
// once, even if the refusal depends on an entry that is not durable: the caller passes nothing on before that entry is
// durable.
func (b *Batch) early() bool { return b.Written != nil }

// written notifies the callers in a group that continue before the group is durable that their batches are in
// the log, and answers refused requests that need not wait for the sync.
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
