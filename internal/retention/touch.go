package retention

import (
	"context"
	"errors"
	"sort"
	"sync"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/wal"
)

// touchEvery is the time during which accesses are collected before they are written to the memories.
const touchEvery = time.Minute

// touchMost is the maximum number of memories whose accesses are collected.
const touchMost = 10_000

// touched has the accesses to memories that were counted and are not written yet.
type touched struct {
	mu    sync.Mutex
	count map[string]int64
	last  map[string]time.Time
	since time.Time
}

// Touch counts one access to each of the given memories. If accesses to many memories are counted, it writes them.
func (r *Retention) Touch(ctx context.Context, ids []string) error {
	now := r.engine.Env().Clock().UTC()
	t := &r.touched
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
		return r.WriteTouched(ctx)
	}
	return nil
}

// WriteDue writes the counted accesses if the oldest of them was counted touchEvery ago, or if the store is closing.
func (r *Retention) WriteDue(ctx context.Context) error {
	t := &r.touched
	t.mu.Lock()
	due := len(t.count) > 0 && (r.engine.Closed().Load() || r.engine.Env().Clock().Sub(t.since) >= touchEvery)
	t.mu.Unlock()
	if !due {
		return nil
	}
	return r.WriteTouched(ctx)
}

// WriteTouched writes the counted accesses now.
func (r *Retention) WriteTouched(ctx context.Context) error {
	t := &r.touched
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
		if err := r.touchOne(ctx, id, count[id], last[id]); err != nil && !errors.Is(err, errs.ErrNotFound) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

func (r *Retention) touchOne(ctx context.Context, id string, n int64, last time.Time) error {
	for {
		v, err := r.engine.Load(ctx, r.engine.Kinds().Memories, id)
		if err != nil {
			return err
		}
		if v.Expired(r.engine.Env().Clock()) { // a write of this version would be refused forever
			return errs.ErrNotFound
		}
		m, err := r.engine.Decode(id, v)
		if err != nil {
			return err
		}
		m.AccessCount += n
		if last.After(m.LastAccessTime) {
			m.LastAccessTime = last
		}
		conds := commit.Conditions{Version: &v.LSN, Unlimited: true}
		err = r.commits.Upkeep(ctx, []commit.Op{{ID: id, Memory: &m, Conds: conds, Cause: wal.CauseUpkeep}}, nil, 0)
		if !errors.Is(err, errs.ErrConflict) {
			return err
		}
	}
}

// ForgetTouched forgets the accesses to the given memories that were counted and are not written yet.
func (r *Retention) ForgetTouched(ids []string) {
	t := &r.touched
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range ids {
		delete(t.count, id)
		delete(t.last, id)
	}
}

// Upkeep writes counted accesses and deletes expired memories, if it is time for that. An open store calls Upkeep every
// few seconds.
func (r *Retention) Upkeep(ctx context.Context) {
	if err := r.WriteDue(ctx); err != nil && ctx.Err() == nil {
		r.engine.Env().Logger.Warn("counting accesses", "err", err)
	}
	r.SweepUp(ctx)
}
