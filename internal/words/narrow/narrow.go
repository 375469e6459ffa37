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

// Cond is a condition on a member of the metadata. A document meets it if the member is a text equal to one of Values,
// or a list with such a text.
type Cond struct {
	Name   string
	Values []string
	Begins bool // the text may also begin with one of Values
}

const (
	mostConds  = 16 // maximum number of conditions that are used: further ones exclude hardly any rows
	mostValues = 64 // maximum number of values of a condition; a condition with more does not narrow
	mostTerms  = 16 // maximum number of words of a value that are looked up: further ones exclude hardly any rows
	mostShare  = 2  // a word is not used to narrow if more than 1/mostShare of the rows have it
	mostLeast  = 16 // exception to mostShare: a word that at most mostLeast rows have is used
	enough     = 4  // no further word of a value is looked up once at most this many rows of a part remain
)

// Rows are sets of rows by the id of their part. A part without a set means all its rows; nil means all rows.
type Rows map[uint64]bitset.Set

// wanted is what one condition requires of a row. Each element of any is a list of terms, and the row must have all
// terms of at least one of these lists. A term counts only in the fields of the set in.
type wanted struct {
	in  query.FieldSet
	any [][]string
}

// Of returns the rows that can satisfy all conditions, and n, the number of live rows among them. If no condition
// restricts the rows, rows is nil and n is 0. bare reports whether a part has no words at all: then all rows of that
// part are in the result.
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
		set, some, err := candidateRows(p, all)
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

// termsOf returns terms that a text has whenever the text equals value. If begins is true, it returns terms that a
// text has whenever the text begins with value. It returns at most mostTerms terms, from the longest to the shortest.
func termsOf(value string, begins bool, an *analyzer.Analyzer) (terms []string) {
	if begins { // the last word of the value may be longer in the text, or have marks
		value = value[:1+strings.LastIndexFunc(value, separates)]
	}
	seen := map[string]bool{}
	an.Tokens([]byte(value), func(t analyzer.Token) {
		term := string(t.Term)
		// Another form of words may extend further in the text than in the value.
		if t.Kind > analyzer.Pair || analyzer.Common(term) && !an.Indexed() || seen[term] {
			return
		}
		seen[term] = true
		terms = append(terms, term)
	})
	slices.SortStableFunc(terms, func(a, b string) int { return len(b) - len(a) })
	return terms[:min(len(terms), mostTerms)]
}

// separates reports whether r is an ASCII character that ends a word, whatever follows it.
func separates(r rune) bool {
	return r < 0x80 && !('0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z')
}

// candidateRows returns the rows of part p that can satisfy all conditions. It includes the rows without a time: they
// stand for documents that could not be read, so that their words are unknown. restricted is false if no condition
// restricts the rows, so that all rows of the part can satisfy the conditions.
func candidateRows(p *words.Part, all []wanted) (set bitset.Set, restricted bool, err error) {
	for i := range all {
		one, ok, err := all[i].matchingRows(p)
		switch {
		case err != nil:
			return nil, false, err
		case !ok:
		case restricted:
			set = intersect(set, one)
		default:
			set, restricted = one, true
		}
	}
	if !restricted {
		return nil, false, nil
	}
	for i := range p.Seg.Rows { // rows without a time come first
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

// matchingRows returns the rows of part p that have the wanted terms. ok is false if so many rows have the terms
// that the terms are no useful restriction.
func (w *wanted) matchingRows(p *words.Part) (set bitset.Set, ok bool, err error) {
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

// intersect returns the intersection of two sets of rows of one part, and either returns their union. Both
// functions may change a.
func intersect(a, b bitset.Set) bitset.Set {
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
