package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/wal"
)

// Expiring tracks the memories that have a time to live. For each memory that changed since the index was written, it
// knows whether the memory has a time to live now and whether it had one in the index. So the time for counting depends
// only on the number of memories that have expired and are not deleted yet, and not on the size of the store. All
// results are as of one position of the log. Expiring is a view.Fold.
type Expiring struct {
	eng    *Engine
	follow Follower
	list   map[string]time.Time // expiry times of the changed memories, by id
	over   map[string]bool      // changed memories that have a row in by_expiry of the index, which is out of date
	buf    []byte
}

func (x *Expiring) init(eng *Engine) {
	x.eng = eng
	x.follow.Fold = x
	x.follow.Passes = func(set *index.Set) bool { return set.Count(index.ByExpiry) == 0 && len(x.list) == 0 }
}

// Reset implements view.Fold: it discards all changes, and starts again with another index.
func (x *Expiring) Reset(context.Context, *index.Set) error {
	x.list, x.over = map[string]time.Time{}, map[string]bool{}
	return nil
}

// Covered implements view.Fold. It returns false for every index, because the changes are relative to the index with
// which Expiring began.
func (x *Expiring) Covered(*index.Set) bool { return false }

// Apply implements view.Fold: it applies one log entry.
func (x *Expiring) Apply(_ context.Context, set *index.Set, e *wal.Entry) error {
	if x.eng.kinds.Of(e.Key) != x.eng.kinds.Memories {
		return nil
	}
	var line index.Entry
	var err error
	if !e.Delete {
		if line, err = LineOf(*e); err != nil {
			return err
		}
	}
	id := strings.Clone(e.Key[1:])
	if line.ExpiresAt.IsZero() {
		delete(x.list, id)
	} else {
		x.list[id] = line.ExpiresAt
	}
	if set.Count(index.ByExpiry) == 0 || x.over[id] {
		return nil
	}
	var ok bool
	if x.buf, ok, err = set.Get(x.buf[:0], index.Memories, id); err != nil || !ok {
		return err
	}
	if line, err = index.ParseLine(x.buf); err != nil {
		return fmt.Errorf("%w: the index line of %s is invalid: %w", errs.ErrCorrupt, human.Quote(id), err)
	}
	if !line.ExpiresAt.IsZero() {
		x.over[id] = true
	}
	return nil
}

// AnyExpiry reports whether any memory may have a time to live. It also returns true if the index cannot be read.
// If it returns false, no memory has a time to live.
func (eng *Engine) AnyExpiry(ctx context.Context) (found bool) {
	x := &eng.expiring
	err := x.follow.With(ctx, eng, func(set *index.Set, _ int64) error {
		found = set.Count(index.ByExpiry) > int64(len(x.over)) || len(x.list) > 0
		return nil
	})
	return found || err != nil
}

// Count returns the number of memories, and the number of those that have expired at the time now.
func (x *Expiring) Count(ctx context.Context, now time.Time) (live, expired int64, err error) {
	err = x.follow.With(ctx, x.eng, func(set *index.Set, n int64) error {
		live = n
		for _, t := range x.list {
			if !t.After(now) {
				expired++
			}
		}
		return x.eachIndexed(set, now, func(string) bool { expired++; return true })
	})
	return live, expired, err
}

// Due returns the ids of memories that have expired at the time now, but no more than limit ids.
func (x *Expiring) Due(ctx context.Context, now time.Time, limit int) (ids []string, err error) {
	err = x.follow.With(ctx, x.eng, func(set *index.Set, _ int64) error {
		err := x.eachIndexed(set, now, func(id string) bool {
			ids = append(ids, id)
			return len(ids) < limit
		})
		for _, id := range slices.Sorted(maps.Keys(x.list)) {
			if !x.list[id].After(now) && len(ids) < limit {
				ids = append(ids, id)
			}
		}
		return err
	})
	return ids, err
}

// eachIndexed calls yield with the ids of the memories that have expired at the time now and did not change since
// the index was written. It stops if yield returns false.
func (x *Expiring) eachIndexed(set *index.Set, now time.Time, yield func(id string) bool) error {
	if set.Count(index.ByExpiry) == 0 {
		return nil
	}
	for e, err := range set.Range(index.ByExpiry, index.Span{}) {
		if err != nil {
			return err
		}
		t, id, ok := index.SplitExpiryKey(string(e.Key))
		if !ok {
			return fmt.Errorf("%w: the section by_expiry has the malformed key %s", errs.ErrCorrupt, human.Quote(string(e.Key)))
		}
		if t.After(now) {
			break
		}
		if !x.over[id] && !yield(id) {
			break
		}
	}
	return nil
}

// ClockGrace is the time for which a memory is kept after its expiry, in case the clock is wrong. If a clock jumps and
// is corrected within this time, nothing is lost.
const ClockGrace = time.Hour
