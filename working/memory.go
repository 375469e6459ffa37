package working

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/varve-db/varve/errs"
)

// Memory gives access to the working memory of one scope. It has no data itself: several Memories, in one or several
// processes, may be open for the same scope of a home. It is safe for concurrent use. The caller owns the values that
// its methods return.
type Memory struct {
	home       Home
	scope      Scope
	opts       Options
	numbers    decoder
	limits     Limits
	defaultTTL int64
	clock      Clock
	created    time.Time
	closed     atomic.Bool
	took       latencies
}

// Open returns a Memory for a scope. It creates the scope if the scope does not exist. If opts is nil, the defaults are
// used.
func Open(ctx context.Context, h Home, s Scope, opts *Options) (*Memory, error) {
	if opts == nil {
		opts = &Options{}
	}
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	if err := s.Validate(); err != nil {
		return nil, err
	}
	m := &Memory{home: h, scope: s, opts: *opts, numbers: decoder(opts.AsWritten), limits: opts.limits(),
		defaultTTL: Forever, clock: opts.Clock}
	if m.clock == nil {
		m.clock = SystemClock()
	}
	if opts.TTL > 0 {
		m.defaultTTL, _ = millis(opts.TTL)
	}
	res, err := m.do(ctx, OpAttach{})
	if err != nil {
		return nil, err
	}
	m.created = res.Created
	return m, nil
}

// Scope returns the scope to which the Memory is attached.
func (m *Memory) Scope() Scope { return m.scope }

// Created returns the creation time of the scope.
func (m *Memory) Created() time.Time { return m.created }

// Home returns the name of the home: "memory", "store" or "redis".
func (m *Memory) Home() string { return m.home.Name() }

// UsingFallback reports whether the home now uses its substitute; see Fallback.
func (m *Memory) UsingFallback() bool {
	f, ok := m.home.(Fallback)
	return ok && f.UsingFallback()
}

// Check returns nil if the Memory is open and the home can be reached.
func (m *Memory) Check(ctx context.Context) error {
	if m.closed.Load() {
		return errs.ErrClosed
	}
	return m.home.Check(ctx)
}

// Drop removes the scope with all its data, including its checkpoints, and reports whether the scope existed. The
// Memory stays open; the next write creates the scope again.
func (m *Memory) Drop(ctx context.Context) (bool, error) {
	res, err := m.do(ctx, OpDrop{})
	return res.N > 0, err
}

// Close closes this Memory. It changes neither the scope nor the home; other Memories may still use them.
func (m *Memory) Close() error {
	m.closed.Store(true)
	return nil
}

// do performs one operation on the scope of the Memory, in the home of the Memory.
func (m *Memory) do(ctx context.Context, op Op) (Result, error) {
	return m.doOn(ctx, m.scope, op)
}

func (m *Memory) doOn(ctx context.Context, s Scope, op Op) (Result, error) {
	if m.closed.Load() {
		return Result{}, errs.ErrClosed
	}
	start := m.clock.Mono()
	res, err := m.home.Do(ctx, &Request{Scope: s, Limits: m.limits, Op: op})
	m.took.add(m.clock.Mono() - start)
	return res, err
}
