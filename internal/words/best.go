package words

import (
	"cmp"
	"container/heap"
	"slices"
)

// top has the best scores in a session, from the highest to the lowest.
type top [sessionBest]float64

func (t *top) add(score float64) {
	for i := range t {
		if score > t[i] {
			score, t[i] = t[i], score
		}
	}
}

func (t *top) sum() (sum float64) {
	for _, x := range t {
		sum += x
	}
	return sessionShare * sum
}

// best returns at most n documents, the best first. The documents pass the filter and have a score of at least
// minScore; if accept is not nil, accept has returned true for each of them. With accept, the number of candidates
// that are needed is not known in advance. So best repeats the ranking with a growing number of candidates until n
// of them are accepted. The longer ranking begins with the shorter one, so no candidate is passed to accept twice.
func (s *search) best(n int, minScore float64, accept func(Hit) (bool, error), limits pruning) ([]Hit, error) {
	most := n
	if accept != nil {
		most = max(2*n, 64)
	}
	hits, ok, err := s.pruned(most, minScore, limits)
	if err != nil {
		return nil, err
	}
	var all *search // of all rows, once it is needed
	defer func() {
		if all != nil {
			all.release()
		}
	}()
	var out []Hit
	for asked := 0; ; most *= 4 {
		if !ok {
			if all == nil {
				if all, err = s.pass(nil); err == nil {
					err = all.score()
				}
				if err == nil {
					err = all.sessions()
				}
				if err != nil {
					return nil, err
				}
			}
			if hits, err = all.ordered(most, minScore); err != nil {
				return nil, err
			}
		}
		if ok = false; accept == nil {
			return hits, nil
		}
		for ; asked < len(hits) && len(out) < n; asked++ {
			ok, err := accept(hits[asked])
			if err != nil {
				return nil, err
			}
			if ok {
				out = append(out, hits[asked])
			}
		}
		if len(out) == n || len(hits) < most {
			return out, nil
		}
	}
}

// ordered returns the best hits of all parts, the best first, but no more than maxHits. The hits pass the filter
// and have a score of at least minScore.
func (s *search) ordered(maxHits int, minScore float64) (hits []Hit, err error) {
	best := make([]worst, len(s.scratch))
	err = s.each(len(best), func(i int) (err error) {
		best[i], err = s.bestOf(i, maxHits, minScore)
		return err
	})
	for _, h := range best {
		hits = append(hits, h...)
	}
	slices.SortFunc(hits, func(a, b Hit) int { return compareHits(&a, &b) })
	return hits[:min(maxHits, len(hits))], err
}

// bestOf returns the best hits of part i as a heap, but no more than maxHits. The hits pass the filter and have a
// score of at least minScore.
func (s *search) bestOf(i, maxHits int, minScore float64) (h worst, err error) {
	c, seg := s.scratch[i], s.parts[i].Seg
	for _, r := range c.touched {
		if !s.meets(i, r) {
			continue
		}
		own, session := s.scores(c, r)
		if score := own + session; score < minScore || len(h) == maxHits && score < h[0].Score {
			continue
		}
		id, err := seg.ID(r)
		if err != nil {
			return nil, err
		}
		if pass, err := s.passes(i, r, id); err != nil {
			return nil, err
		} else if !pass {
			continue
		}
		hit := Hit{At: Ref{s.parts[i].ID, r}, ID: string(id), Score: own + session, Parts: Parts{own, session, c.self.Has(r)}}
		if hit.LSN, err = seg.LSN(r); err != nil {
			return nil, err
		}
		switch {
		case len(h) < maxHits:
			heap.Push(&h, hit)
		case compareHits(&hit, &h[0]) < 0:
			h[0] = hit
			heap.Fix(&h, 0)
		}
	}
	return h, s.ctx.Err()
}

// meets reports whether row r of part i meets the conditions of the query and is among the rows of the filter.
func (s *search) meets(i int, r uint32) bool {
	c := s.scratch[i]
	return (!c.narrowed || c.only.Has(r)) && !c.not.Has(r) &&
		(s.mustHave == 0 || c.must != nil && c.must[r] >= s.mustHave)
}

// passes reports whether row r of part i, whose id is given, passes the filter's conditions on the id's prefix and on
// times.
func (s *search) passes(i int, r uint32, id []byte) (bool, error) {
	f, seg := s.filter, s.parts[i].Seg
	if f.judges(s.parts[i].ID) {
		return true, nil
	}
	if len(id) < len(f.Prefix) || string(id[:len(f.Prefix)]) != f.Prefix {
		return false, nil
	}
	if f.From != nil || f.Before != nil {
		t, err := seg.Time(r)
		if err != nil || f.From != nil && t < *f.From || f.Before != nil && t >= *f.Before {
			return false, err
		}
	}
	return true, nil
}

// sessions finds the best scores in each session that has a document with a score. From these it computes, for each
// session, the amount to add to the scores of the session's documents. A session can have rows in several parts;
// sessions recognizes it by its name.
func (s *search) sessions() error {
	byName := map[string]*top{}
	type elsewhere struct {
		c   *scratch
		n   uint32
		top *top
	}
	var several []elsewhere
	err := s.each(len(s.scratch), func(i int) error {
		c := s.scratch[i]
		for _, r := range c.touched { // the scores may have grown since the last call
			c.tops[c.session(r)] = top{}
		}
		for _, r := range c.touched {
			if !c.not.Has(r) {
				c.tops[c.session(r)].add(c.score[r])
			}
		}
		return s.ctx.Err()
	})
	if err != nil {
		return err
	}
	for i, c := range s.scratch {
		if c.shared == nil {
			continue
		}
		for n := range uint32(len(c.tops)) {
			if !c.shared.Has(n) || c.tops[n] == (top{}) {
				continue
			}
			name, err := s.parts[i].Seg.SessionName(n)
			if err != nil {
				return err
			}
			of := byName[string(name)]
			if of == nil {
				of = new(top)
				byName[string(name)] = of
			}
			for _, x := range c.tops[n] {
				of.add(x)
			}
			several = append(several, elsewhere{c, n, of})
		}
	}
	for _, e := range several {
		e.c.tops[e.n] = *e.top
	}
	return s.each(len(s.scratch), func(i int) error {
		c := s.scratch[i]
		for n := range c.shares {
			c.shares[n] = c.tops[n].sum()
		}
		return nil
	})
}

// of returns the amount to add to the score of row r because of the scores in the row's session.
func (s *scratch) of(r uint32) float64 {
	n := s.session(r)
	if n == 0 && s.nameless {
		return sessionShare * s.score[r]
	}
	return s.shares[n]
}

func compareHits(a, b *Hit) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
}

// worst is a heap of hits. The worst hit is at the top.
type worst []Hit

func (w worst) Len() int           { return len(w) }
func (w worst) Less(i, j int) bool { return compareHits(&w[i], &w[j]) > 0 }
func (w worst) Swap(i, j int)      { w[i], w[j] = w[j], w[i] }
func (w *worst) Push(x any)        { *w = append(*w, x.(Hit)) }
func (w *worst) Pop() any          { h := (*w)[len(*w)-1]; *w = (*w)[:len(*w)-1]; return h }
