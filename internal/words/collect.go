package words

import (
	"cmp"
	"slices"

	"github.com/varve-db/varve/internal/words/analyzer"
	"github.com/varve-db/varve/internal/words/query"
)

// collect reads the postings of w, the current word, in part i. It sets c.posts to the live rows that have the word
// and that are searched, with the counts of the word in each row. It sets c.tally to the tally of all live rows that
// have the word, whether they are searched or not. If the tally is known already, or the word is excluded and needs no
// tally, collect reads only the postings of the searched rows.
func (s *search) collect(i int, w *query.Word, fields query.FieldSet) error {
	p, c := s.parts[i], s.scratch[i]
	c.posts, c.tally = c.posts[:0], tally{}
	known := s.tallies[s.at]
	if known != nil {
		if c.tally = known[i]; c.df == 0 {
			return nil
		}
	}
	counted := known != nil || w.Not
	if w.Prefix {
		return c.several(p, w, fields, counted)
	}
	e, ok, err := p.Seg.lookup([]byte(w.Term))
	if err != nil || !ok {
		return err
	}
	take := func(o one) {
		content, other := o.times(fields)
		if content == 0 && other == 0 {
			return
		}
		if !counted {
			c.count(c.layout, o.row, content > 0)
		}
		if (counted || c.searches(o.row)) && !c.not.Has(o.row) {
			c.posts = append(c.posts, own{o.row, content, other})
		}
	}
	return c.read(p, &e, counted, take)
}

// read calls take for the live rows that have the term of entry e: only for the searched rows if searched is true,
// otherwise for all.
func (c *scratch) read(p *Part, e *entry, searched bool, take func(one)) error {
	if searched && c.some {
		return p.among(e, c.in, take)
	}
	return p.having(e, func(o one) bool { take(o); return true })
}

// searches reports whether row is among the rows to which the search is limited, or the search is not limited.
func (c *scratch) searches(row uint32) bool { return !c.some || c.in.has(row) }

// several collects the rows that have a term which begins with the word. If a row has several such terms, it counts
// once in the tally, and the counts of its terms are added up. If counted is true, several does not change the tally,
// and reads only the searched rows.
func (c *scratch) several(p *Part, w *query.Word, fields query.FieldSet, counted bool) error {
	err := p.beginning(w, func(e *entry) (bool, error) {
		return true, c.read(p, e, counted, func(o one) {
			if content, other := o.times(fields); content > 0 || other > 0 {
				c.posts = append(c.posts, own{o.row, content, other})
			}
		})
	})
	if err != nil {
		return err
	}
	c.posts, c.spare = byRow(c.posts, c.spare)
	out := c.posts[:0]
	for _, o := range c.posts {
		if n := len(out); n > 0 && out[n-1].row == o.row {
			out[n-1].content = min(out[n-1].content+o.content, 1<<28)
			out[n-1].other = min(out[n-1].other+o.other, 1<<28)
			continue
		}
		out = append(out, o)
	}
	for _, o := range out {
		if !counted {
			c.count(c.layout, o.row, o.content > 0)
		}
	}
	c.posts = slices.DeleteFunc(out, func(o own) bool { return !c.searches(o.row) || c.not.Has(o.row) })
	return nil
}

// digit is the number of bits of a row number by which one pass of byRow distributes the posts. For fewer than fewPosts
// posts, sorting by comparison is faster.
const (
	digit    = 11
	fewPosts = 512
)

// byRow sorts posts by row. It may use the array of spare as working memory; rest is the array that is free afterwards.
// A short prefix matches hundreds of terms with many postings. Distributing the postings by the digits of their row
// numbers (radix sort) takes a fraction of the time that comparing them would take.
func byRow(posts, spare []own) (sorted, rest []own) {
	if len(posts) < fewPosts {
		slices.SortFunc(posts, func(a, b own) int { return cmp.Compare(a.row, b.row) })
		return posts, spare
	}
	last := uint32(0)
	for _, o := range posts {
		last = max(last, o.row)
	}
	spare = slices.Grow(spare[:0], len(posts))[:len(posts)]
	for shift := 0; shift < 32 && last>>shift > 0; shift += digit {
		var at [1 << digit]int
		for _, o := range posts {
			at[o.row>>shift%(1<<digit)]++
		}
		begin := 0
		for i, n := range at {
			at[i] = begin
			begin += n
		}
		for _, o := range posts {
			i := o.row >> shift % (1 << digit)
			spare[at[i]] = o
			at[i]++
		}
		posts, spare = spare, posts
	}
	return posts, spare
}

// beginning calls visit for each term of the part that begins with w.Term, until visit returns false or an error. If
// w.Common is true, terms of stop words are included.
func (p *Part) beginning(w *query.Word, visit func(e *entry) (bool, error)) error {
	begins := []string{w.Term}
	if w.Common {
		begins = append(begins, analyzer.AsCommon(w.Term))
	}
	for _, begin := range begins {
		d, err := p.Seg.from([]byte(begin))
		if err != nil {
			return err
		}
		for {
			e, ok, err := d.read()
			if err != nil {
				return err
			}
			if !ok || len(e.term) < len(begin) || string(e.term[:len(begin)]) != begin {
				break
			}
			if more, err := visit(&e); err != nil || !more {
				return err
			}
		}
	}
	return nil
}

// Has reports whether a live document has word w of a query in one of the fields in which w is searched.
func (v *Set) Has(w *query.Word) (found bool, err error) {
	look := func(p *Part, e *entry) error {
		return p.having(e, func(o one) bool {
			content, other := o.times(w.Fields)
			found = content > 0 || other > 0
			return !found
		})
	}
	for _, p := range v.parts {
		if w.Prefix {
			err = p.beginning(w, func(e *entry) (bool, error) {
				err := look(p, e)
				return !found, err
			})
		} else if e, ok, lerr := p.Seg.lookup([]byte(w.Term)); lerr != nil {
			err = lerr
		} else if ok {
			err = look(p, &e)
		}
		if err != nil || found {
			return found, err
		}
	}
	return false, nil
}

// having calls visit for the live rows that have a term, until visit returns false.
func (p *Part) having(e *entry, visit func(one) bool) error {
	posts, err := p.Seg.posts(e)
	if err != nil {
		return err
	}
	for {
		o, ok, err := posts.next()
		if err != nil || !ok {
			return err
		}
		if !p.dead.Has(o.row) && !visit(o) {
			return nil
		}
	}
}

// Holders calls visit for the live rows that have a term in one of the fields in fieldSet. If more than maxRows
// rows have the term in any field, dead rows included, Holders does not call visit and returns false. If no row
// has the term, it returns true.
func (p *Part) Holders(term string, fieldSet query.FieldSet, maxRows int, visit func(row uint32)) (bool, error) {
	e, ok, err := p.Seg.lookup([]byte(term))
	if err != nil || !ok || e.df > maxRows {
		return err == nil && !ok, err
	}
	return true, p.having(&e, func(o one) bool {
		if o.fields()&fieldSet != 0 {
			visit(o.row)
		}
		return true
	})
}
