package words

import (
	"cmp"
	"slices"

	"github.com/varve-db/varve/internal/words/analyzer"
	"github.com/varve-db/varve/internal/words/query"
)

// collect reads the postings of a word in part i. It sets c.posts to the searched rows that are live and have
// the word, with their counts. It sets c.tally to the tally of all live rows that have the word, searched or
// not. If the tally of all parts is known already (c.df > 0), it reads the postings of the searched rows only.
func (s *search) collect(i int, w *query.Word, fields query.FieldSet) error {
	p, c := s.parts[i], s.scratch[i]
	c.posts, c.tally = c.posts[:0], tally{}
	if w.Prefix {
		return c.several(p, w, fields)
	}
	posts := func(o one) {
		if content, other := o.times(fields); content > 0 || other > 0 {
			c.count(c.layout, o.row, content > 0)
			if o.row >= c.from && o.row < c.to && !c.not.Has(o.row) {
				c.posts = append(c.posts, own{o.row, content, other})
			}
		}
	}
	some := c.from > 0 || int(c.to) < p.Seg.Rows
	if some && fields == query.AllFields {
		t, err := p.tally(w.Term)
		if c.tally = t; err != nil || t.df == 0 || c.from == c.to {
			return err
		}
	}
	e, ok, err := p.Seg.lookup([]byte(w.Term))
	if err != nil || !ok {
		return err
	}
	if c.df > 0 { // the tally is known
		return p.having(&e, c.from, func(o one) bool {
			if o.row >= c.from && o.row < c.to {
				c.take(o, fields)
			}
			return o.row < c.to
		})
	}
	return p.having(&e, 0, func(o one) bool { posts(o); return true })
}

// several collects the rows that have a term beginning with the word. The tally counts a row that has several
// such terms once; the counts of these terms are added up.
func (c *scratch) several(p *Part, w *query.Word, fields query.FieldSet) error {
	err := p.beginning(w, func(e *entry) (bool, error) {
		return true, p.having(e, 0, func(o one) bool {
			if content, other := o.times(fields); content > 0 || other > 0 {
				c.posts = append(c.posts, own{o.row, content, other})
			}
			return true
		})
	})
	if err != nil {
		return err
	}
	slices.SortFunc(c.posts, func(a, b own) int { return cmp.Compare(a.row, b.row) })
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
		c.count(c.layout, o.row, o.content > 0)
	}
	c.posts = slices.DeleteFunc(out, func(o own) bool { return o.row < c.from || o.row >= c.to || c.not.Has(o.row) })
	return nil
}

// beginning calls visit for each term that begins with a word, until visit returns false or an error.
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

// Has reports whether a live document has a word of a query in one of the fields that the word is searched in.
func (v *Set) Has(w *query.Word) (has bool, err error) {
	look := func(p *Part, e *entry) error {
		return p.having(e, 0, func(o one) bool {
			content, other := o.times(w.Fields)
			has = content > 0 || other > 0
			return !has
		})
	}
	for _, p := range v.parts {
		if w.Prefix {
			err = p.beginning(w, func(e *entry) (bool, error) {
				err := look(p, e)
				return !has, err
			})
		} else if e, ok, lerr := p.Seg.lookup([]byte(w.Term)); lerr != nil {
			err = lerr
		} else if ok {
			err = look(p, &e)
		}
		if err != nil || has {
			return has, err
		}
	}
	return false, nil
}

func (c *scratch) take(o one, fields query.FieldSet) {
	if c.not.Has(o.row) {
		return
	}
	if content, other := o.times(fields); content > 0 || other > 0 {
		c.posts = append(c.posts, own{o.row, content, other})
	}
}

// having calls visit for the live rows that have a term, from row from on, until visit returns false. Some rows before
// from may be visited too.
func (p *Part) having(e *entry, from uint32, visit func(one) bool) error {
	posts, err := p.Seg.posts(e)
	if err != nil {
		return err
	}
	posts.from = int64(from)
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

// Holders calls visit for the live rows that have a term in one of the fields in the parameter in. If more rows than
// the parameter most have the term (dead rows and other fields included), it visits none and returns false.
func (p *Part) Holders(term string, in query.FieldSet, most int, visit func(row uint32)) (bool, error) {
	e, ok, err := p.Seg.lookup([]byte(term))
	if err != nil || !ok || e.df > most {
		return err == nil && !ok, err
	}
	return true, p.having(&e, 0, func(o one) bool {
		if o.fields()&in != 0 {
			visit(o.row)
		}
		return true
	})
}
