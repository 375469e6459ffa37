package words

import (
	"cmp"
	"math"
	"slices"

	"github.com/varve-db/varve/internal/words/query"
)

// A common word adds little to a score, and reading all its postings takes most of the time of a search. So a first
// pass looks for the rare words only. The scores that these words give to documents are a lower bound of the score that
// a hit must have, and upper bounds of what the other words can add tell which sessions can still have a document with
// that score. A second pass looks for all words in these sessions only. It makes the same sums in the same order as a
// pass over all rows, so the scores are the same to the bit. This is MaxScore (Turtle and Flood, 1995) for sessions in
// the place of documents.

// pruning has the limits that pruned and the functions it calls use.
type pruning struct {
	least int // the number of postings of optional words from which on pruned tries two passes
	share int // the first pass may read 1 in share of these postings

	// The product of three numbers must be at most 1: odds; the score that the words of the second pass can add,
	// divided by the score that the words of the first pass can add; the share of the postings that the first pass
	// reads.
	odds float64
	rows int // the second pass may search 1 in rows of all rows
}

// usual has the limits that Search uses.
var usual = pruning{least: 1 << 13, share: 3, odds: 64, rows: 4}

// slack is a safety factor: a document is excluded only if its bound differs from the score by more than this factor.
// It covers rounding differences between sums that are made in another order.
const slack = 1 + 1e-9

// plan is the order in which pruned searches for the words of a query, and the points at which it can choose the
// sessions for the second pass.
type plan struct {
	first     []int     // words that are always looked for: excluded ones and conditions
	later     []int     // the others, the rarest first
	most      []float64 // per word in later: the most that it adds to a score
	requires  bool      // a document without a word in first cannot be a hit
	cost, all int       // cost: number of the postings of first, as far as it is known; all: of the postings of later
	tries     []try
}

// try is a point in the first pass at which pruned tries to choose the sessions that the second pass searches.
type try struct {
	looked int     // number of words in later that the pass has searched for
	rest   float64 // the most that the other words in later add to a score
}

func (s *search) plan(limits pruning) (p plan) {
	for _, not := range [...]bool{true, false} {
		for i := range s.query.All {
			w := &s.query.All[i]
			if w.Not != not || !s.uses(i) {
				continue
			}
			optional := !w.Not && !w.Must && !w.Either && !w.Quiet && !w.Prefix && w.Fields == query.AllFields
			if !optional {
				p.first, p.cost = append(p.first, i), p.cost+s.counts[i]
				p.requires = p.requires || w.Must && !w.Quiet
			} else if df := s.df(i); df > 0 {
				p.later, p.all = append(p.later, i), p.all+df
			}
		}
	}
	slices.SortStableFunc(p.later, func(a, b int) int { return cmp.Compare(s.df(a), s.df(b)) })
	for _, i := range p.later {
		of := sumOf(s.tallies[i])
		x := s.mostWeight(&of.times)
		p.most = append(p.most, s.idf(i, of.df)*(k1+1)*x/(x+k1))
	}
	if len(p.later) == 0 || len(p.later) == 1 && !p.requires || p.all < limits.least {
		return p
	}
	// If the first pass does not exclude enough sessions, its work is lost. That is likelier if the other words
	// outweigh its words, and if many documents have its words. So the product of these two ratios is limited.
	had, read := 0.0, p.cost
	for k, i := range p.later {
		rest := 0.0
		for _, x := range p.most[k:] {
			rest += x
		}
		if read > p.all/limits.share {
			break
		}
		if p.requires || rest < had && rest*float64(read)*limits.odds <= had*float64(p.all) {
			p.tries = append(p.tries, try{k, rest})
		}
		had, read = had+p.most[k], read+s.df(i)
	}
	return p
}

// df returns the number of documents that have word i of the query. For a word that counts as a name, it returns the
// number of documents that have the word in the name field. The documents with the word must have been counted before.
func (s *search) df(i int) int { return cmp.Or(s.named[i], s.counts[i]) }

// mostWeight returns an upper bound of the weight w (see the package comment) of a word.
func (s *search) mostWeight(t *times) float64 {
	c := 0.0
	for i, l := range t.shortest {
		n := int32(i + 1)
		if i == len(t.shortest)-1 {
			n = t.content
		}
		if l > 0 {
			c = max(c, float64(n)/s.norm(l-1))
		}
	}
	return c*(1+shareBefore+shareBehind) + float64(t.other)/unit
}

// pruned returns the best hits that pass the filter, the best first, but no more than maxHits. The hits have a
// score of at least minScore. ok is false if a pass over all rows is cheaper, or if it is unknown which is
// cheaper.
func (s *search) pruned(maxHits int, minScore float64, limits pruning) (hits []Hit, ok bool, err error) {
	if s.filter.Session != nil {
		return nil, false, nil // few rows are searched anyway
	}
	p := s.plan(limits)
	if len(p.tries) == 0 {
		return nil, false, nil
	}
	in, err := s.candidates(&p, maxHits, minScore, limits)
	if in == nil || err != nil {
		return nil, false, err
	}
	pass, err := s.pass(in)
	defer pass.release()
	if err == nil {
		err = pass.score()
	}
	if err == nil {
		err = pass.sessions()
	}
	if err == nil {
		hits, err = pass.ordered(maxHits, minScore)
	}
	return hits, err == nil, err
}

// candidates makes the first pass: it searches all rows for the conditions and the rarest words of the query. It
// returns the rows of the sessions in which a document can be among the best maxHits hits with a score of at least
// minScore. It returns nil if these are too many rows.
func (s *search) candidates(p *plan, maxHits int, minScore float64, limits pruning) ([]spans, error) {
	pass, err := s.pass(nil)
	defer pass.release()
	if err != nil {
		return nil, err
	}
	pass.partial = true
	for _, i := range p.first {
		if err := pass.word(i); err != nil {
			return nil, err
		}
	}
	if err := pass.groups(s.query.Either); err != nil {
		return nil, err
	}
	looked := 0
	for _, t := range p.tries {
		for ; looked < t.looked; looked++ {
			if err := pass.word(p.later[looked]); err != nil {
				return nil, err
			}
		}
		if in, err := pass.reaching(t.rest, maxHits, minScore, p.requires, limits); in != nil || err != nil {
			return in, err
		}
	}
	return nil, nil
}

// reaching returns the rows of those sessions in which a document can still be among the best maxHits hits with a
// score of at least minScore. It assumes that the words not searched for yet add at most rest to the score of each
// document. The result is nil if there are too many such rows. If requires is true, a document without a score so
// far cannot be a hit.
func (s *search) reaching(rest float64, maxHits int, minScore float64, requires bool, limits pruning) ([]spans, error) {
	if err := s.sessions(); err != nil {
		return nil, err
	}
	hits, err := s.ordered(maxHits, minScore)
	if err != nil {
		return nil, err
	}
	if len(hits) == maxHits {
		minScore = max(minScore, hits[maxHits-1].Score)
	}
	inSession := float64(sessionShare * sessionBest * rest)
	if !requires && (rest+inSession)*slack >= minScore {
		return nil, nil
	}
	marks := s.newMarks()
	for i, c := range s.scratch {
		for _, r := range c.touched {
			limit, n, meets := c.score[r]+rest, c.session(r), s.meets(i, r)
			alone := n == 0 && c.nameless
			switch {
			case !meets && (requires || alone):
				continue
			case alone:
				limit += sessionShare * limit
			case !meets: // but a document of the session without a score may be a hit
				limit = rest + c.shares[n] + inSession
			default:
				limit += c.shares[n] + inSession
			}
			if limit*slack >= minScore {
				if err := marks.add(place{i, r}); err != nil {
					return nil, err
				}
			}
		}
	}
	in, err := marks.spans()
	if err != nil {
		return nil, err
	}
	rows, all := 0, 0
	for i, l := range in {
		rows, all = rows+l.rows(), all+s.parts[i].Seg.Rows
	}
	if rows > all/limits.rows {
		return nil, nil
	}
	return in, s.ctx.Err()
}

// times has upper bounds of how often rows have a word.
type times struct {
	// shortest[k] is the length of the shortest content, plus 1, that has the word k+1 times, or, for the last one, as
	// often or more often; 0: no content has it so often.
	shortest [4]uint32
	content  int32 // maximum number of times that a content has the word
	other    int32 // maximum weight of the word in other fields, in multiples of 1/unit
}

// add extends the bounds to one more row that has the word: content and other are the results of one.times for the
// row, and length is the number of words in the row's content.
func (t *times) add(content, other int32, length uint32) {
	if content > 0 {
		s := &t.shortest[min(int(content), len(t.shortest))-1]
		*s = shorter(*s, min(length, math.MaxUint32-1)+1)
	}
	t.content, t.other = max(t.content, content), max(t.other, other)
}

// join extends the bounds to the rows for which o has the bounds.
func (t *times) join(o *times) {
	for i := range t.shortest {
		t.shortest[i] = shorter(t.shortest[i], o.shortest[i])
	}
	t.content, t.other = max(t.content, o.content), max(t.other, o.other)
}

// shorter returns the lesser of two values of times.shortest, in which 0 means that there is no length.
func shorter(a, b uint32) uint32 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
