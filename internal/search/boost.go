package search

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/engine"
	view "github.com/varve-db/varve/internal/view/words"
)

// Boosts raise the scores of recent memories, and of memories with a high quickrecal_score. They apply to the best hits
// of a search only: to a window that does not depend on the number of hits asked for. They never lower a score, so hits
// after the window stay there. Both are off by default: in general, newer memories do not answer questions more often.

const (
	// MostBoost is the maximum of Recency and Importance.
	MostBoost       = 1000
	defaultHalfLife = 30 * 24 * time.Hour
)

func (q *Query) boosts() bool { return q.Recency > 0 || q.Importance > 0 }

func (q *Query) validateBoosts() error {
	for _, b := range []struct {
		field string
		value float64
	}{{"Recency", q.Recency}, {"Importance", q.Importance}} {
		if !(b.value >= 0 && b.value <= MostBoost) {
			return &errs.FieldError{Field: "query " + b.field, Value: fmt.Sprint(b.value),
				Limit: fmt.Sprintf("0 to %d", MostBoost), Err: errs.ErrInvalid}
		}
	}
	switch {
	case q.HalfLife < 0:
		return &errs.FieldError{Field: "query HalfLife", Value: q.HalfLife.String(),
			Err: fmt.Errorf("%w: negative", errs.ErrInvalid)}
	case q.HalfLife > 0 && q.Recency == 0:
		return &errs.FieldError{Field: "query HalfLife", Value: q.HalfLife.String(),
			Err: fmt.Errorf("%w: requires Recency, which is 0", errs.ErrInvalid)}
	}
	return nil
}

// boosted returns the n best hits of a query whose scores are raised by recency or importance (see raise). It omits
// hits whose raised score is less than minScore.
func (s *Search) boosted(ctx context.Context, q *Query, f *engine.Filters, n int, minScore float64, bad *unreadable,
	a *asked) ([]found, error) {
	list, err := s.ranked(ctx, q, f, max(window, n), math.Inf(-1), bad, a)
	if err == nil {
		err = s.raise(ctx, q, list)
	}
	if err != nil {
		return nil, err
	}
	list = atLeast(list, minScore)
	return list[:min(n, len(list))], nil
}

// raise raises the scores of the best hits in list by recency and importance, and sorts these hits again. The best
// hits are the first ones, at most as many as the constant window.
func (s *Search) raise(ctx context.Context, q *Query, list []found) error {
	best := list[:min(window, len(list))]
	var ids []string
	for i := range best {
		if !best[i].note {
			ids = append(ids, best[i].ID)
		}
	}
	facts, err := s.orders.Facts(ctx, ids)
	if err != nil {
		return err
	}
	now := s.engine.Env().Clock().UnixMicro()
	for i := range best {
		if best[i].note {
			if t, ok := s.noteTime(ctx, best[i].ID); ok {
				best[i].boost(q, now, view.Fact{Time: t.UnixMicro()})
			}
			continue
		}
		f, ok := facts[best[i].ID]
		if !ok { // missing in the index, or the index cannot be read
			m, err := s.get(ctx, best[i].ID)
			switch {
			case ended(ctx, err) != nil:
				return ended(ctx, err)
			case err != nil: // reported when the page that contains the memory is read
				continue
			}
			f = view.Fact{Time: m.Timestamp.UnixMicro(), Score: m.QuickRecalScore}
		}
		best[i].boost(q, now, f)
	}
	slices.SortFunc(best, compareFound)
	return nil
}

// boost raises the score of one hit. If the score is negative, boost moves it towards 0. In both cases, two hits that
// get the same boost keep their order.
func (h *found) boost(q *Query, now int64, f view.Fact) {
	age := max(float64(now)-float64(f.Time), 0) / 1e6
	recency := q.Recency * math.Exp2(-age/cmp.Or(q.HalfLife, defaultHalfLife).Seconds())
	importance := q.Importance * min(max(f.Score, 0), 1)
	unit := h.Score
	if unit < 0 {
		unit /= -(1 + recency + importance)
	}
	h.recency, h.importance = unit*recency, unit*importance
	h.Score += h.recency + h.importance
}
