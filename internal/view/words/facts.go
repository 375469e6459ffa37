package words

import (
	"context"

	"github.com/varve-db/varve/internal/words/build"
	"github.com/varve-db/varve/internal/words/rows"
)

// Fact has two values of a memory: its time, in microseconds since 1970, and its quickrecal_score.
type Fact struct {
	Time  int64
	Score float64
}

// Facts returns the facts of some memories, by id. The result does not have memories that are not in the view, or that
// could not be read when the view was made. If the view has no usable files, the result is empty.
func (o *Orders) Facts(ctx context.Context, ids []string) (all map[string]Fact, err error) {
	_, err = o.withSnapshot(ctx, func(s *Snapshot) error {
		all = make(map[string]Fact, len(ids))
		for _, id := range ids {
			at, _, ok, err := s.Set.Find(id)
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
			t, err := rows.TimeOf(s.Set, at)
			if err != nil {
				return err
			}
			line, err := rows.LineOf(s.Set, at)
			if err != nil {
				return err
			}
			if t != build.NoTime {
				all[id] = Fact{t, line.Score}
			}
		}
		return nil
	})
	return all, err
}
