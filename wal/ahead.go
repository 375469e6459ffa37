package wal

import (
	"bytes"
	"context"
	"strings"
)

// Ahead is the newest entry of a key, or its deletion, where that is written and this process has
// not applied it, as a rule because it is not durable yet; in memory of its own. False where there is
// none. sole says that it is a batch of its own: what else such a batch says is not seen before it is
// applied.
//
// What follows from it must not be told before it is durable: see Settle. A batch on top of it stands
// behind it in the log, so that none of the two is ever there without the other.
func (l *FileLog) Ahead(ctx context.Context, key string) (e Entry, sole, ok bool) {
	l.state.mu.Lock()
	defer l.state.mu.Unlock()
	if err := l.advance(ctx, l.shared.Tail(), l.shared.Durable()); err != nil {
		return Entry{}, false, false // who reads what is durable hears of it
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

// Written is up to where the log is written, by whatever process.
func (l *FileLog) Written() LSN { return l.shared.Tail() }

// Settle returns when the entry at a position is durable and applied.
func (l *FileLog) Settle(ctx context.Context, at LSN) error {
	if err := l.syncTo(ctx, at+1); err != nil {
		return err
	}
	if err := l.keeps(at + 1); err != nil {
		return err
	}
	return l.CatchUp(ctx)
}

// early reports whether a caller goes on before its batch is durable: a refusal rests on what he does not
// pass on, and he is told at once.
func (b *Batch) early() bool { return b.Written != nil }

// written tells those of a group who go on before it is durable that their batches are in the log,
// and answers the refused that need not wait for it.
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
