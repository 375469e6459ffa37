package working

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/varve-db/varve/errs"
)

// Memory is the working memory of one scope. It holds no data itself: any number of Memories, in
// any number of processes, may be open on one scope of one home. It is safe for concurrent use. The
// caller owns the values that its methods return.
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

// Open attaches to a scope, and creates it if it does not exist; an existing scope keeps its
// creation time. nil options mean the defaults.
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

// UsingFallback reports whether operations use the home's substitute at the moment.
func (m *Memory) UsingFallback() bool {
	f, ok := m.home.(Fallback)
	return ok && f.UsingFallback()
}

// Check returns nil if the home can be reached.
func (m *Memory) Check(ctx context.Context) error {
	if m.closed.Load() {
		return errs.ErrClosed
	}
	return m.home.Check(ctx)
}

// Drop removes the scope and everything in it, including its checkpoints, and reports whether there
// was one. The Memory stays open; the next write creates the scope again.
func (m *Memory) Drop(ctx context.Context) (bool, error) {
	res, err := m.do(ctx, OpDrop{})
	return res.N > 0, err
}

// Close detaches the Memory. The scope and its home, which other Memories may use, are unaffected.
func (m *Memory) Close() error {
	m.closed.Store(true)
	return nil
}

// do carries out one operation.
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
