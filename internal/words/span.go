package words

import "sort"

// span is a range of rows: from ≤ row < to.
type span struct{ from, to uint32 }

// spans is a list of rows: ascending ranges, none of them empty, that do not overlap.
type spans []span

// with returns the list with the range from ≤ row < to appended. The range must be after all rows of the list.
func (l spans) with(from, to uint32) spans {
	if n := len(l); n > 0 && l[n-1].to == from {
		l[n-1].to = to
		return l
	}
	return append(l, span{from, to})
}

// has reports whether a row is in the list.
func (l spans) has(row uint32) bool {
	i := sort.Search(len(l), func(i int) bool { return l[i].to > row })
	return i < len(l) && l[i].from <= row
}

// rows returns the number of rows in the list.
func (l spans) rows() (n int) {
	for _, s := range l {
		n += int(s.to - s.from)
	}
	return n
}

// among calls visit for each live row in rows that has the term of the dictionary entry e. It does not decode groups
// of postings without such rows.
func (p *Part) among(e *entry, rows spans, visit func(one)) error {
	if len(rows) == 0 {
		return nil
	}
	posts, err := p.Seg.posts(e)
	if err != nil {
		return err
	}
	for posts.from = int64(rows[0].from); ; {
		o, ok, err := posts.next()
		if err != nil || !ok {
			return err
		}
		for o.row >= rows[0].to {
			if rows = rows[1:]; len(rows) == 0 {
				return nil
			}
			posts.from = int64(rows[0].from)
		}
		if o.row >= rows[0].from && !p.dead.Has(o.row) {
			visit(o)
		}
	}
}
