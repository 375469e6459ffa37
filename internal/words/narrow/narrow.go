package narrow

import (
	"math/bits"
	"slices"
	"strings"

	"github.com/varve-db/varve/internal/words"
	"github.com/varve-db/varve/internal/words/analyzer"
	"github.com/varve-db/varve/internal/words/bitset"
	"github.com/varve-db/varve/internal/words/order"
	"github.com/varve-db/varve/internal/words/query"
)

// Cond says that a member of the metadata, or one of its list, is a text that is one of some values.
type Cond struct {
	Name   string
	Values []string
	Begins bool // or begins with one
}

const (
	mostConds  = 16 // more say hardly more
	mostValues = 64 // of a condition; with more it does not narrow
	mostTerms  = 16 // of a value; more say hardly more
	mostShare  = 2  // a word that more than one in so many rows have does not narrow
	mostLeast  = 16 // but as many always may
	enough     = 4  // rows of a part that are not worth another word
)

// Rows are sets of rows by the id of their part; of a part that is not in it, all rows. nil: all.
type Rows map[uint64]bitset.Set

// wanted is what one condition asks for: all terms of one of the lists.
type wanted struct {
	in  query.FieldSet
	any [][]string
}

// Of finds the rows, and how many live ones there are of them. bare says that the rows of a part have no
// words.
func Of(v *words.Set, conds []Cond, an *analyzer.Analyzer, from *query.Sources,
	bare func(*words.Part) bool) (rows Rows, n int, err error) {
	var all []wanted
	for i := range conds[:min(len(conds), mostConds)] {
		if w, ok := wantedOf(&conds[i], an, from); ok {
			all = append(all, w)
		}
	}
	if len(all) == 0 {
		return nil, 0, nil
	}
	rows = Rows{}
	for _, p := range v.Parts() {
		if bare(p) || !p.Seg.Sorted {
			n += p.Rows()
			continue
		}
		set, some, err := of(p, all)
		if err != nil {
			return nil, 0, err
		}
		if !some {
			n += p.Rows()
			continue
		}
		rows[p.ID] = set
		n += count(set)
	}
	return rows, n, nil
}

func count(set bitset.Set) (n int) {
	for _, w := range set {
		n += bits.OnesCount64(w)
	}
	return n
}

func wantedOf(c *Cond, an *analyzer.Analyzer, from *query.Sources) (w wanted, ok bool) {
	from.Each(func(f query.Field, name string) {
		if name == c.Name {
			w.in |= query.Of(f)
		}
	})
	if w.in == 0 || len(c.Values) > mostValues {
		return w, false
	}
	for _, value := range c.Values {
		terms := termsOf(value, c.Begins, an)
		if len(terms) == 0 {
			return w, false
		}
		w.any = append(w.any, terms)
	}
	return w, true
}

// termsOf are terms that a text has which is a value, or begins with it: some of them, the longest first.
func termsOf(value string, begins bool, an *analyzer.Analyzer) (terms []string) {
	if begins { // the last word may go on behind it, or have marks
		value = value[:1+strings.LastIndexFunc(value, separates)]
	}
	seen := map[string]bool{}
	an.Tokens([]byte(value), func(t analyzer.Token) {
		term := string(t.Term)
		// Another form of words may be longer in the text.
		if t.Kind > analyzer.Pair || analyzer.Common(term) && !an.Indexed() || seen[term] {
			return
		}
		seen[term] = true
		terms = append(terms, term)
	})
	slices.SortStableFunc(terms, func(a, b string) int { return len(b) - len(a) })
	return terms[:min(len(terms), mostTerms)]
}

// separates says of ASCII that it ends a word, whatever follows.
func separates(r rune) bool {
	return r < 0x80 && !('0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z')
}

// of finds the rows of a part; false: all of them.
func of(p *words.Part, all []wanted) (set bitset.Set, some bool, err error) {
	for i := range all {
		one, ok, err := all[i].of(p)
		switch {
		case err != nil:
			return nil, false, err
		case !ok:
		case some:
			set = both(set, one)
		default:
			set, some = one, true
		}
	}
	if !some {
		return nil, false, nil
	}
	for i := range p.Seg.Rows { // those without a time come first
		r, err := p.Seg.Ranked(order.ByTime, i)
		if err != nil {
			return nil, false, err
		}
		if t, err := p.Seg.Time(r); err != nil || t != words.NoTime {
			return set, true, err
		}
		if !p.Dead(r) {
			set = set.With(r, p.Seg.Rows)
		}
	}
	return set, true, nil
}

// of finds the rows of a part that have the terms; false where that is too many to be looked for.
func (w *wanted) of(p *words.Part) (set bitset.Set, ok bool, err error) {
	for _, terms := range w.any {
		one, some := bitset.Set(nil), false
		for _, term := range terms {
			var now bitset.Set
			n := 0
			ok, err := p.Holders(term, w.in, max(mostLeast, p.Seg.Rows/mostShare), func(r uint32) {
				if !some || one.Has(r) {
					now = now.With(r, p.Seg.Rows)
					n++
				}
			})
			if err != nil {
				return nil, false, err
			}
			if !ok {
				continue
			}
			one, some = now, true
			if n <= enough {
				break
			}
		}
		if !some {
			return nil, false, nil
		}
		set = either(set, one)
	}
	return set, true, nil
}

// both and either take sets of one part, and may change the first.
func both(a, b bitset.Set) bitset.Set {
	if a == nil || b == nil {
		return nil
	}
	for i := range a {
		a[i] &= b[i]
	}
	return a
}

func either(a, b bitset.Set) bitset.Set {
	if a == nil {
		return b
	}
	for i := range b {
		a[i] |= b[i]
	}
	return a
}
