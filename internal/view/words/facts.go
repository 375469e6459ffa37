package words

import "github.com/varve-db/varve/internal/words/rows"

// Fact is when a memory happened, in microseconds since 1970 (build.NoTime where that is not known), and its
// quickrecal_score.
type Fact struct {
	Time  int64
	Score float64
}

// Facts are those of some memories, without those that it does not have.
func (s *Snapshot) Facts(ids []string) (map[string]Fact, error) {
	all, scored := make(map[string]Fact, len(ids)), rows.Sorted(s.Set)
	for _, id := range ids {
		at, _, ok, err := s.Set.Find(id)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		f := Fact{}
		if f.Time, err = rows.TimeOf(s.Set, at); err == nil && scored {
			line, lerr := rows.LineOf(s.Set, at)
			f.Score, err = line.Score, lerr
		}
		if err != nil {
			return nil, err
		}
		all[id] = f
	}
	return all, nil
}
