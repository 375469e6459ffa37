package counts

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/wal"
)

// Counts knows how much there is, and what goes where room has to be made.
type Counts struct {
	engine    *engine.Engine
	Tally     Tally
	Evictions Evictions
	watching  sync.Once
	putsFrom  atomic.Uint64 // from here on all that is put is noted
}

// Sum is how much there is of something.
type Sum struct{ N, Bytes int64 }

// Plus adds.
func (s Sum) Plus(o Sum) Sum { return Sum{s.N + o.N, s.Bytes + o.Bytes} }

// Minus takes away.
func (s Sum) Minus(o Sum) Sum { return Sum{s.N - o.N, s.Bytes - o.Bytes} }

// Tally is how many memories there are and how many bytes they have, in all and in
// the sessions that were asked about. It is kept only where something is limited. The
// index's metadata have the sums of the index; what changed since is added, each
// change once. A session's sum is made by reading its lines, once in a process; what
// that costs is bounded by what it may hold. It is a view.Fold.
type Tally struct {
	counts   *Counts
	follow   engine.Follower
	all      Sum
	sessions map[string]Sum
	over     map[string]tallyLine // what changed since the index was written, by id
}

// tallyLine is the newest version of a memory, as the tally has it.
type tallyLine struct {
	version wal.LSN
	session string
	size    int64 // -1: deleted
}

func (c tallyLine) sum() Sum {
	if c.size < 0 {
		return Sum{}
	}
	return Sum{1, c.size}
}

// tallied bounds how many sessions are kept.
const tallied = 1024

// New returns the totals of a store.
func New(eng *engine.Engine) *Counts {
	cs := &Counts{engine: eng}
	cs.Tally.counts = cs
	cs.Tally.follow.Fold = &cs.Tally
	cs.Evictions.turns.held = semaphore.NewWeighted(int64(Alone))
	return cs
}

// PutsFrom returns the position from which on all puts are noted.
func (cs *Counts) PutsFrom() *atomic.Uint64 { return &cs.putsFrom }

// Look says how much there is in all, and in some sessions, as of this call or later.
func (t *Tally) Look(ctx context.Context, sessions []string) (all Sum, in map[string]Sum, err error) {
	eng := t.counts.engine
	if err := eng.CatchUp(ctx); err != nil {
		return Sum{}, nil, err
	}
	err = t.follow.With(ctx, eng, func(set *index.Set, _ int64) error {
		all = t.all
		in, err = t.inSessions(set, sessions)
		return err
	})
	if err != nil {
		return Sum{}, nil, fmt.Errorf("counting: %w", eng.DamageOf(err))
	}
	return all, in, nil
}

// Reset implements view.Fold.
func (t *Tally) Reset(_ context.Context, set *index.Set) error {
	bytes, known := index.MemoryBytes(set)
	if !known {
		if bytes, known = index.SumMemories(set); !known {
			return fmt.Errorf("%w: a line of the index cannot be read", errs.ErrCorrupt)
		}
	}
	t.all = Sum{set.Count(index.Memories), bytes}
	t.sessions, t.over = map[string]Sum{}, map[string]tallyLine{}
	t.counts.Evictions.reset() // they were not fed with what it takes in
	return nil
}

// Covered implements view.Fold: what an index takes in that was counted before changes
// nothing.
func (t *Tally) Covered(set *index.Set) bool {
	for id, c := range t.over {
		if c.version < set.LSN() {
			delete(t.over, id)
		}
	}
	return true
}

// Apply implements view.Fold.
func (t *Tally) Apply(_ context.Context, set *index.Set, e *wal.Entry) error {
	eng := t.counts.engine
	if eng.Kinds().Of(e.Key) != eng.Kinds().Memories {
		return nil
	}
	id := strings.Clone(e.Key[1:])
	now := tallyLine{version: e.LSN, size: -1}
	if !e.Delete {
		line, err := engine.LineOf(*e)
		if err != nil {
			return err
		}
		line.Version = e.LSN
		now.session, now.size = line.SessionID, line.Size
		t.counts.Evictions.feed(id, &line)
	}
	was, err := t.before(set, id)
	if err != nil {
		return err
	}
	t.all = t.all.Minus(was.sum()).Plus(now.sum())
	if s, ok := t.sessions[was.session]; ok {
		t.sessions[was.session] = s.Minus(was.sum())
	}
	if s, ok := t.sessions[now.session]; ok {
		t.sessions[now.session] = s.Plus(now.sum())
	}
	t.over[id] = now
	return nil
}

// before is what the tally has of a memory.
func (t *Tally) before(set *index.Set, id string) (tallyLine, error) {
	if c, ok := t.over[id]; ok {
		return c, nil
	}
	line, ok, err := set.Get(nil, index.Memories, id)
	if err != nil || !ok {
		return tallyLine{size: -1}, err
	}
	e, err := index.ParseLine(line)
	if err != nil {
		return tallyLine{}, fmt.Errorf("%w: index line of %s: %w", errs.ErrCorrupt, human.Quote(id), err)
	}
	return tallyLine{e.Version, e.SessionID, e.Size}, nil
}

// inSessions are the sums of some sessions.
func (t *Tally) inSessions(set *index.Set, sessions []string) (map[string]Sum, error) {
	if len(sessions) == 0 {
		return nil, nil
	}
	in := make(map[string]Sum, len(sessions))
	for _, session := range sessions {
		s, ok := t.sessions[session]
		if !ok {
			var err error
			if s, err = t.session(set, session); err != nil {
				return nil, err
			}
			if len(t.sessions) >= tallied {
				clear(t.sessions)
			}
			t.sessions[session] = s
		}
		in[session] = s
	}
	return in, nil
}

// session reads the lines of a session.
func (t *Tally) session(set *index.Set, session string) (s Sum, err error) {
	prefix := index.SessionPrefix(session)
	var line []byte
	for e, err := range set.Range(index.BySession, index.Span{Prefix: prefix}) {
		if err != nil {
			return s, err
		}
		id := string(e.Key[len(prefix):])
		if _, ok := t.over[id]; ok {
			continue
		}
		var ok bool
		if line, ok, err = set.Get(line[:0], index.Memories, id); err == nil && !ok {
			err = fmt.Errorf("%w: by_session names %s, which is not in the index", errs.ErrCorrupt, human.Quote(id))
		}
		if err != nil {
			return s, err
		}
		l, err := index.ParseLine(line)
		if err != nil {
			return s, fmt.Errorf("%w: index line of %s: %w", errs.ErrCorrupt, human.Quote(id), err)
		}
		s = s.Plus(Sum{1, l.Size})
	}
	for _, c := range t.over {
		if c.session == session {
			s = s.Plus(c.sum())
		}
	}
	return s, nil
}
