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

// Counts maintains the number and size of a store's memories, and chooses memories to evict.
type Counts struct {
	engine    *engine.Engine
	Tally     Tally
	Evictions Evictions
	watching  sync.Once
	putsFrom  atomic.Uint64 // puts from this log position on are counted
}

// Sum is a number of memories and their size in bytes.
type Sum struct{ N, Bytes int64 }

// Plus returns s + o.
func (s Sum) Plus(o Sum) Sum { return Sum{s.N + o.N, s.Bytes + o.Bytes} }

// Minus returns s − o.
func (s Sum) Minus(o Sum) Sum { return Sum{s.N - o.N, s.Bytes - o.Bytes} }

// Tally maintains the number and the bytes of all memories, and of the memories in the sessions that were asked for. It
// is a view.Fold that is used only if a limit is set. The metadata of the index has the sums at the position of the
// index; Tally adds each later change once. It computes the sum of a session by reading the session's lines, once per
// process. The cost of this is bounded by the limit of the session.
type Tally struct {
	counts   *Counts
	follow   engine.Follower
	all      Sum
	sessions map[string]Sum
	// the counted version of each memory that was changed since the index was written, by id
	over map[string]tallyLine
}

// tallyLine is the newest version of a memory that the tally has counted.
type tallyLine struct {
	version wal.LSN
	session string
	size    int64 // bytes of the memory; -1: deleted
}

func (c tallyLine) sum() Sum {
	if c.size < 0 {
		return Sum{}
	}
	return Sum{1, c.size}
}

// tallied is the maximum number of sessions whose sums a Tally keeps in memory.
const tallied = 1024

// New returns the Counts of a store.
func New(eng *engine.Engine) *Counts {
	cs := &Counts{engine: eng}
	cs.Tally.counts = cs
	cs.Tally.follow.Fold = &cs.Tally
	cs.Evictions.turns.held = semaphore.NewWeighted(int64(Alone))
	return cs
}

// PutsFrom returns the variable that has the log position at which Watch began to count puts; 0 before that. All puts
// after this position are counted.
func (cs *Counts) PutsFrom() *atomic.Uint64 { return &cs.putsFrom }

// Look returns the number and size of all memories, and of the memories in each of the given sessions. The result
// includes all commits before the call.
func (t *Tally) Look(ctx context.Context, sessions []string) (all Sum, bySession map[string]Sum, err error) {
	eng := t.counts.engine
	if err := eng.CatchUp(ctx); err != nil {
		return Sum{}, nil, err
	}
	err = t.follow.With(ctx, eng, func(set *index.Set, _ int64) error {
		all = t.all
		bySession, err = t.inSessions(set, sessions)
		return err
	})
	if err != nil {
		return Sum{}, nil, fmt.Errorf("counting: %w", eng.DamageOf(err))
	}
	return all, bySession, nil
}

// Reset starts counting again from the sums that an index records. It implements view.Fold.
func (t *Tally) Reset(_ context.Context, set *index.Set) error {
	bytes, known := index.MemoryBytes(set)
	if !known {
		if bytes, known = index.SumMemories(set); !known {
			return fmt.Errorf("%w: a line of the index cannot be read", errs.ErrCorrupt)
		}
	}
	t.all = Sum{set.Count(index.Memories), bytes}
	t.sessions, t.over = map[string]Sum{}, map[string]tallyLine{}
	t.counts.Evictions.reset() // the lists were not fed with the entries that the new index contains
	return nil
}

// Covered returns true: a newer index does not change the sums, because the tally has already counted all changes that
// the index contains. It implements view.Fold.
func (t *Tally) Covered(set *index.Set) bool {
	for id, c := range t.over {
		if c.version < set.LSN() {
			delete(t.over, id)
		}
	}
	return true
}

// Apply adds a log entry to the sums; it implements view.Fold.
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

// before returns the version of a memory that the tally has counted last. Its size is -1 if the tally has counted no
// version of this memory.
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
		return tallyLine{}, fmt.Errorf("%w: the index line of %s is invalid: %w", errs.ErrCorrupt, human.Quote(id), err)
	}
	return tallyLine{e.Version, e.SessionID, e.Size}, nil
}

// inSessions returns the number and the size in bytes of the memories in some sessions.
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

// session computes the sum of a session. It reads the session's lines in the index, and replaces those of memories
// that were changed later by the counted versions.
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
			err = fmt.Errorf("%w: the section by_session names %s, which is not in the index", errs.ErrCorrupt, human.Quote(id))
		}
		if err != nil {
			return s, err
		}
		l, err := index.ParseLine(line)
		if err != nil {
			return s, fmt.Errorf("%w: the index line of %s is invalid: %w", errs.ErrCorrupt, human.Quote(id), err)
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
