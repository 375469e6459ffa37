package words

import (
	"cmp"
	"container/heap"
	"slices"
)

// top is the best of a session, the best first.
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

// best orders what was touched. Where it must be asked whether a document is accepted, more and more
// are ordered until enough are: those before have the same order among them.
func (s *search) best(f Filter, n int, least float64, accept func(Hit) (bool, error)) ([]Hit, error) {
	tops, err := s.sessions()
	if err != nil || accept == nil {
		if err != nil {
			return nil, err
		}
		return s.ordered(tops, &f, n, least)
	}
	var out []Hit
	for asked, most := 0, max(2*n, 64); ; most *= 4 {
		hits, err := s.ordered(tops, &f, most, least)
		if err != nil {
			return nil, err
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

// ordered are the best that pass the filter, at most as many.
func (s *search) ordered(tops *tops, f *Filter, most int, least float64) ([]Hit, error) {
	h := &worst{}
	for i, c := range s.scratch {
		seg := s.parts[i].Seg
		if err := s.ctx.Err(); err != nil {
			return nil, err
		}
		for _, r := range c.touched {
			if c.not.has(r) || s.mustHave > 0 && (c.must == nil || c.must[r] < s.mustHave) {
				continue
			}
			own := c.score[r]
			session, err := tops.of(i, r, own)
			if err != nil {
				return nil, err
			}
			hit := Hit{At: Ref{s.parts[i].ID, r}, Score: own + session, Parts: Parts{own, session}}
			if hit.Score < least || len(*h) == most && hit.Score < (*h)[0].Score {
				continue
			}
			id, err := seg.ID(r)
			if err != nil {
				return nil, err
			}
			if pass, err := s.passes(f, i, r, id); err != nil {
				return nil, err
			} else if !pass {
				continue
			}
			hit.ID = string(id)
			if hit.LSN, err = seg.LSN(r); err != nil {
				return nil, err
			}
			switch {
			case len(*h) < most:
				heap.Push(h, hit)
			case compareHits(&hit, &(*h)[0]) < 0:
				(*h)[0] = hit
				heap.Fix(h, 0)
			}
		}
	}
	hits := []Hit(*h)
	slices.SortFunc(hits, func(a, b Hit) int { return compareHits(&a, &b) })
	return hits, nil
}

// passes asks the filter.
func (s *search) passes(f *Filter, i int, r uint32, id []byte) (bool, error) {
	seg := s.parts[i].Seg
	if len(id) < len(f.Prefix) || string(id[:len(f.Prefix)]) != f.Prefix {
		return false, nil
	}
	if f.From != nil || f.Before != nil {
		t, err := seg.Time(r)
		if err != nil || f.From != nil && t < *f.From || f.Before != nil && t >= *f.Before {
			return false, err
		}
	}
	if f.Session == nil {
		return true, nil
	}
	n, err := seg.session(r)
	if err != nil {
		return false, err
	}
	name, err := seg.sessionName(n)
	return *f.Session != "" && string(name) == *f.Session, err
}

// tops are the best of each session that was touched: by part and number, or by name where it is in
// several parts.
type tops struct {
	s     *search
	local []map[uint32]*top
	empty []bool // session 0 of a part has no name
}

func (s *search) sessions() (*tops, error) {
	t := &tops{s: s, local: make([]map[uint32]*top, len(s.parts)), empty: make([]bool, len(s.parts))}
	byName := map[string]*top{}
	several := 0
	for _, c := range s.scratch {
		if len(c.touched) > 0 {
			several++
		}
	}
	for i, c := range s.scratch {
		p := s.parts[i]
		var err error
		if t.empty[i], err = p.nameless(0); err != nil {
			return nil, err
		}
		t.local[i] = map[uint32]*top{}
		for _, r := range c.touched {
			n, err := p.Seg.session(r)
			if err != nil {
				return nil, err
			}
			if n == 0 && t.empty[i] {
				continue
			}
			best := t.local[i][n]
			if best == nil {
				if several > 1 {
					name, err := p.Seg.sessionName(n)
					if err != nil {
						return nil, err
					}
					if best = byName[string(name)]; best == nil {
						best = new(top)
						byName[string(name)] = best
					}
				} else {
					best = new(top)
				}
				t.local[i][n] = best
			}
			best.add(c.score[r])
		}
	}
	return t, nil
}

// of is what the session of a row adds to its score.
func (t *tops) of(i int, r uint32, own float64) (float64, error) {
	n, err := t.s.parts[i].Seg.session(r)
	if err != nil {
		return 0, err
	}
	if n == 0 && t.empty[i] {
		return sessionShare * own, nil
	}
	return t.local[i][n].sum(), nil
}

func compareHits(a, b *Hit) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
}

// worst is a heap with the worst hit on top.
type worst []Hit

func (w worst) Len() int           { return len(w) }
func (w worst) Less(i, j int) bool { return compareHits(&w[i], &w[j]) > 0 }
func (w worst) Swap(i, j int)      { w[i], w[j] = w[j], w[i] }
func (w *worst) Push(x any)        { *w = append(*w, x.(Hit)) }
func (w *worst) Pop() any          { h := (*w)[len(*w)-1]; *w = (*w)[:len(*w)-1]; return h }
