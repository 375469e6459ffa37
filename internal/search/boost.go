package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/varve-db/varve/errs"
)

// Boosts raise scores by how long ago something happened, and by quickrecal_score. They need the document,
// so they are for the best of a search only: a window that does not depend on how many hits are asked for.
// They never lower a score, so what follows behind the window stays there. Both are off by default: what is
// new is not what answers a question more often (recency costs 0.4 to 1.4 points of LoCoMo's).

// The limits of boosts.
const (
	defaultHalfLife = 30 * 24 * time.Hour
	mostBoost       = 1000
)

func (q *Query) boosts() bool { return q.Recency > 0 || q.Importance > 0 }

func (q *Query) validateBoosts() error {
	for _, b := range []struct {
		field string
		value float64
	}{{"Recency", q.Recency}, {"Importance", q.Importance}} {
		if !(b.value >= 0 && b.value <= mostBoost) {
			return &errs.FieldError{Field: "query " + b.field, Value: fmt.Sprint(b.value), Limit: fmt.Sprintf("0 to %d", mostBoost), Err: errs.ErrInvalid}
		}
	}
	switch {
	case q.HalfLife < 0:
		return &errs.FieldError{Field: "query HalfLife", Value: q.HalfLife.String(), Err: fmt.Errorf("%w: negative", errs.ErrInvalid)}
	case q.HalfLife > 0 && q.Recency == 0:
		return &errs.FieldError{Field: "query HalfLife", Value: q.HalfLife.String(), Err: fmt.Errorf("%w: it is about Recency, which is 0", errs.ErrInvalid)}
	}
	return nil
}

// boosted raises the scores of the best, and sorts them again.
func (s *Search) boosted(ctx context.Context, q *Query, list []found) error {
	now, half := s.Engine.Env.Clock(), cmp.Or(q.HalfLife, defaultHalfLife)
	best := list[:min(window, len(list))]
	for i := range best {
		h := &best[i]
		m, err := s.get(ctx, h.ID)
		switch {
		case errors.Is(err, errs.ErrClosed), ctx.Err() != nil:
			return err
		case err != nil: // said when the hits are read
			continue
		}
		of := math.Abs(h.Score)
		if q.Recency > 0 {
			age := max(now.Sub(m.Timestamp), 0)
			h.recency = of * q.Recency * math.Exp2(-float64(age)/float64(half))
		}
		h.importance = of * q.Importance * min(max(m.QuickRecalScore, 0), 1)
		h.Score += h.recency + h.importance
	}
	slices.SortFunc(best, func(a, b found) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID)) })
	return nil
}
