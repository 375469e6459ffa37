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

// Expiring knows which of the memories that changed since the index was written have a
// time to live, and which had one there. So counting costs what has expired and was not
// swept yet, however much there is. All that it says is of one moment. It is a view.Fold.
type Expiring struct {
	eng    *Engine
	follow Follower
	list   map[string]time.Time // of what changed: when it expires
	over   map[string]bool      // what changed: by_expiry of the index has it, and is out of date
	buf    []byte
}

func (x *Expiring) init(eng *Engine) {
	x.eng = eng
	x.follow.Fold = x
	x.follow.Passes = func(set *index.Set) bool { return set.Count(index.ByExpiry) == 0 && len(x.list) == 0 }
}

// Reset implements view.Fold.
func (x *Expiring) Reset(context.Context, *index.Set) error {
	x.list, x.over = map[string]time.Time{}, map[string]bool{}
	return nil
}

// Covered implements view.Fold: what changed is of one index.
func (x *Expiring) Covered(*index.Set) bool { return false }

// Apply implements view.Fold.
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
		return fmt.Errorf("%w: index line of %s: %w", errs.ErrCorrupt, human.Quote(id), err)
	}
	if !line.ExpiresAt.IsZero() {
		x.over[id] = true
	}
	return nil
}

// AnyExpiry reports whether any memory has a time to live. It may say yes where it is not so.
func (eng *Engine) AnyExpiry(ctx context.Context) (any bool) {
	x := &eng.expiring
	err := x.follow.With(ctx, eng, func(set *index.Set, _ int64) error {
		any = set.Count(index.ByExpiry) > int64(len(x.over)) || len(x.list) > 0
		return nil
	})
	return any || err != nil
}

// Count is how many memories there are, and how many of them are over at now.
func (x *Expiring) Count(ctx context.Context, now time.Time) (live, expired int64, err error) {
	err = x.follow.With(ctx, x.eng, func(set *index.Set, n int64) error {
		live = n
		for _, t := range x.list {
			if !t.After(now) {
				expired++
			}
		}
		return x.below(set, now, func(string) bool { expired++; return true })
	})
	return live, expired, err
}

// Due are some of the memories that were over at a time, at most so many.
func (x *Expiring) Due(ctx context.Context, at time.Time, most int) (ids []string, err error) {
	err = x.follow.With(ctx, x.eng, func(set *index.Set, _ int64) error {
		err := x.below(set, at, func(id string) bool {
			ids = append(ids, id)
			return len(ids) < most
		})
		for _, id := range slices.Sorted(maps.Keys(x.list)) {
			if !x.list[id].After(at) && len(ids) < most {
				ids = append(ids, id)
			}
		}
		return err
	})
	return ids, err
}

// below names the memories that are over at a time and did not change since the index
// was written.
func (x *Expiring) below(set *index.Set, at time.Time, yield func(id string) bool) error {
	if set.Count(index.ByExpiry) == 0 {
		return nil
	}
	for e, err := range set.Range(index.ByExpiry, index.Span{}) {
		if err != nil {
			return err
		}
		t, id, ok := index.SplitExpiryKey(string(e.Key))
		if !ok {
			return fmt.Errorf("%w: by_expiry has the key %s", errs.ErrCorrupt, human.Quote(string(e.Key)))
		}
		if t.After(at) {
			break
		}
		if !x.over[id] && !yield(id) {
			break
		}
	}
	return nil
}

// ClockGrace is for how long a clock that says that something is over is not believed: one
// that jumps, and is put right within it, costs nothing.
const ClockGrace = time.Hour
