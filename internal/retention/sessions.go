package retention

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/index/table"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/segment"
)

// Session describes a session from the index. A session exists as long as it has a memory.
type Session struct {
	ID       string
	Memories int64
	Bytes    int64     // bytes of the files of its memories
	First    time.Time // when its first memory was created
	Last     time.Time // when a memory in it was last written
}

func (s *Session) add(line *index.Entry) {
	s.Memories++
	s.Bytes += line.Size
	if first := engine.Truncated(line.CreatedAt); s.Memories == 1 || first.Before(s.First) {
		s.First = first
	}
	if last := engine.Truncated(line.UpdatedAt); s.Memories == 1 || last.After(s.Last) {
		s.Last = last
	}
}

// One returns one session. If it has no memory, the error is ErrNotFound.
func (r *Retention) One(ctx context.Context, id string) (Session, error) {
	if err := r.engine.CatchUp(ctx); err != nil {
		return Session{}, err
	}
	s := Session{ID: id}
	for l, err := range r.engine.Lines(ctx, r.engine.Kinds().Memories, engine.Filters{Session: &id}) {
		if err != nil {
			return s, err
		}
		s.add(&l.Line)
	}
	if s.Memories == 0 {
		return s, fmt.Errorf("session %s: %w", human.Quote(id), errs.ErrNotFound)
	}
	return s, nil
}

// sessionChange is a memory of a session that changed since the index was written.
type sessionChange struct {
	order string // id of the session, in the form by which the index sorts
	line  *index.Entry
}

// Each yields the sessions, in the order of their ids as JSON writes them.
func (r *Retention) Each(ctx context.Context, yield func(Session, error) bool) {
	list, ok, err := r.orders.Sessions(ctx)
	if !ok && err == nil {
		r.eachOfIndex(ctx, yield)
		return
	}
	if err != nil {
		yield(Session{}, err)
	}
	for i := range list {
		s := &list[i]
		if !yield(Session{s.ID, s.Rows, s.Bytes, time.UnixMicro(s.First).UTC(), time.UnixMicro(s.Last).UTC()}, nil) {
			return
		}
		if i%1024 == 1023 && ctx.Err() != nil {
			yield(Session{}, ctx.Err())
			return
		}
	}
}

// eachOfIndex does the same as Each. It reads all index lines that name a session.
func (r *Retention) eachOfIndex(ctx context.Context, yield func(Session, error) bool) {
	changed, err := r.engine.Overlay().Sorted(ctx, r.engine, r.engine.Kinds().Memories)
	if err != nil {
		yield(Session{}, err)
		return
	}
	now := r.engine.Env().Clock()
	over := func(line *index.Entry) bool { return !line.ExpiresAt.IsZero() && !now.Before(line.ExpiresAt) }
	var news []sessionChange
	for _, c := range changed {
		if c.Deleted || c.Line.SessionID == "" || over(&c.Line) {
			continue
		}
		order, err := table.EncodeKey(index.SessionPrefix(c.Line.SessionID))
		if err != nil {
			yield(Session{}, err)
			return
		}
		news = append(news, sessionChange{order, &c.Line})
	}
	slices.SortStableFunc(news, func(a, b sessionChange) int { return strings.Compare(a.order, b.order) })

	var s Session // the session whose memories are being counted
	current := ""
	// enter begins a session, after the sessions that come before it.
	enter := func(order, id string) bool {
		if order == current {
			return true
		}
		if s.Memories > 0 && !yield(s, nil) {
			return false
		}
		for len(news) > 0 && news[0].order < order {
			s, current = Session{ID: news[0].line.SessionID}, news[0].order
			for len(news) > 0 && news[0].order == current {
				s.add(news[0].line)
				news = news[1:]
			}
			if !yield(s, nil) {
				return false
			}
		}
		s, current = Session{ID: id}, order
		for len(news) > 0 && news[0].order == order {
			s.add(news[0].line)
			news = news[1:]
		}
		return true
	}
	for it, err := range r.inSessions() {
		if ctx.Err() != nil {
			yield(Session{}, ctx.Err())
			return
		}
		if err != nil {
			if !yield(Session{}, err) {
				return
			}
			continue
		}
		if engine.Overtaken(changed, it.Key) {
			continue
		}
		order, err := table.EncodeKey(index.SessionPrefix(it.Line.SessionID))
		if err != nil {
			yield(Session{}, err)
			return
		}
		if !enter(order, it.Line.SessionID) {
			return
		}
		if !over(&it.Line) {
			s.add(&it.Line)
		}
	}
	enter("\xff", "") // after all: keys are UTF-8
}

// inSessions yields the index lines of memories that belong to a session, sorted by session. If the index is found
// damaged and was repaired in the meantime, it continues with the repaired index.
func (r *Retention) inSessions() iter.Seq2[engine.Item, error] {
	return func(yield func(engine.Item, error) bool) {
		span, buf := index.Span{}, []byte(nil)
		for again := true; again; {
			again = false
			swaps, set := r.engine.State().Swaps(), r.engine.State().Set()
			if set == nil {
				yield(engine.Item{}, errs.ErrClosed)
				return
			}
			for e, err := range set.Range(index.BySession, span) {
				it := engine.Item{}
				if err == nil {
					span = index.Span{From: string(e.Key), After: true}
					it.Line.SessionID, it.ID, _ = index.SplitSessionKey(string(e.Key))
					var ok bool
					if buf, ok, err = set.Get(buf[:0], index.Memories, it.ID); err == nil && !ok {
						err = fmt.Errorf("%w: the section by_session names %s, which is not in the index",
							errs.ErrCorrupt, human.Quote(it.ID))
					}
				}
				if err == nil {
					if it.Key, err = table.EncodeKey(it.ID); err == nil {
						it.Line, err = index.ParseLine(buf)
					}
				}
				if errors.Is(err, errs.ErrCorrupt) {
					if r.engine.Healed(swaps) {
						again = true
						break
					}
					err = r.engine.DamageOf(err)
				}
				if !yield(it, err) {
					break
				}
			}
			_ = set.Release()
		}
	}
}

// Delete deletes all memories of a session, expired ones too, and returns their number. If the session has no memory,
// the error is ErrNotFound.
func (r *Retention) Delete(ctx context.Context, id string) (int64, error) {
	if err := r.engine.CatchUp(ctx); err != nil {
		return 0, err
	}
	var ids []string
	for l, err := range r.engine.Lines(ctx, r.engine.Kinds().Memories, engine.Filters{Session: &id, Expired: true}) {
		if err != nil {
			return 0, fmt.Errorf("session %s: %w", human.Quote(id), err)
		}
		ids = append(ids, l.ID)
	}
	if len(ids) == 0 {
		return 0, fmt.Errorf("session %s: %w", human.Quote(id), errs.ErrNotFound)
	}
	var done int64
	for len(ids) > 0 {
		part := ids[:r.deletable(len(ids), func(i int) string { return ids[i] })]
		n, err := r.deleteIf(ctx, r.commits.Commit, 0, part, func(line *index.Entry) bool { return line.SessionID == id })
		if done += int64(n); err != nil {
			return done, fmt.Errorf("session %s: %w", human.Quote(id), err)
		}
		ids = ids[len(part):]
	}
	return done, nil
}

// deletable returns how many of n deletions, counted from the first one, fit into one commit. The function id returns
// the id of the i-th deletion.
func (r *Retention) deletable(n int, id func(i int) string) int {
	const record = 24 // bytes that a deletion takes in the log: see package record
	limit, size := r.engine.Log().Limit(), uint64(0)
	for i := range n {
		if size += segment.FrameSize(uint64(1 + len(id(i)) + record)); size > limit && i > 0 {
			return i
		}
	}
	return n
}
