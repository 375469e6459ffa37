package varve

import (
	"context"
	"errors"
	"sort"
	"sync"
	"time"

	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/errs"
)

// touchEvery is how long accesses are collected before they are written.
const touchEvery = time.Minute

// touchMost bounds how many memories are collected before that.
const touchMost = 10_000

// touched are the accesses that are not written yet.
type touched struct {
	mu    sync.Mutex
	count map[string]int64
	last  map[string]time.Time
	since time.Time
}

// Touch counts an access to memories: access_count and last_access_time. Counts
// are collected for a minute, then written as an Update each; those of a
// process that is killed meanwhile are lost.
func (st *Store) Touch(ctx context.Context, ids ...string) error {
	if err := st.engine.Begun(); err != nil {
		return err
	}
	defer st.engine.Ended()
	if err := st.engine.Writable(); err != nil {
		return err
	}
	now := st.engine.Env.Clock().UTC()
	t := &st.touched
	t.mu.Lock()
	if t.count == nil {
		t.count, t.last, t.since = map[string]int64{}, map[string]time.Time{}, now
	}
	for _, id := range ids {
		t.count[id]++
		t.last[id] = now
	}
	full := len(t.count) >= touchMost
	t.mu.Unlock()
	if full {
		return st.writeTouched(ctx)
	}
	return nil
}

// flushTouched writes the accesses if they are old enough or the store closes.
func (st *Store) flushTouched(ctx context.Context) error {
	t := &st.touched
	t.mu.Lock()
	due := len(t.count) > 0 && (st.engine.Closed.Load() || st.engine.Env.Clock().Sub(t.since) >= touchEvery)
	t.mu.Unlock()
	if !due {
		return nil
	}
	return st.writeTouched(ctx)
}

func (st *Store) writeTouched(ctx context.Context) error {
	t := &st.touched
	t.mu.Lock()
	count, last := t.count, t.last
	t.count, t.last = nil, nil
	t.mu.Unlock()
	ids := make([]string, 0, len(count))
	for id := range count {
		ids = append(ids, id)
	}
	sort.Strings(ids)
	var failed []error
	for _, id := range ids {
		if err := st.touchOne(ctx, id, count[id], last[id]); err != nil && !errors.Is(err, errs.ErrNotFound) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

func (st *Store) touchOne(ctx context.Context, id string, n int64, last time.Time) error {
	for {
		v, err := st.engine.Load(ctx, st.engine.Kinds.Memories, id)
		if err != nil {
			return err
		}
		m, err := st.engine.Decode(id, v)
		if err != nil {
			return err
		}
		m.AccessCount += n
		if last.After(m.LastAccessTime) {
			m.LastAccessTime = last
		}
		conds := conditionsOf([]Cond{IfVersion(v.LSN)})
		conds.Unlimited = true
		err = st.commits.Commit(ctx, []commit.Op{{ID: id, Memory: &m, Conds: conds}}, nil, 0)
		if !errors.Is(err, errs.ErrConflict) {
			return err
		}
	}
}
