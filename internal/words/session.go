package words

// InSession returns the live rows of the session with this name, and their ids. It lists the parts one after the
// other; the rows of a part are sorted by time and id.
func (v *Set) InSession(name string) (refs []Ref, ids []string, err error) {
	for _, p := range v.parts {
		n, ok, err := p.Seg.FindSession(name)
		if err != nil {
			return nil, nil, err
		}
		if !ok {
			continue
		}
		from, to, err := p.Seg.RowsOf(n)
		if err != nil {
			return nil, nil, err
		}
		for r := from; r < to; r++ {
			if p.dead.Has(r) {
				continue
			}
			id, err := p.Seg.ID(r)
			if err != nil {
				return nil, nil, err
			}
			refs, ids = append(refs, Ref{p.ID, r}), append(ids, string(id))
		}
	}
	return refs, ids, nil
}

// LSN returns the version of the document in the row ref.
func (v *Set) LSN(ref Ref) (uint64, error) {
	i, ok := v.index[ref.Part]
	if !ok {
		return 0, broken("a row links to a row of part %d, but there is no such part", ref.Part)
	}
	return v.parts[i].Seg.LSN(ref.Row)
}

// Union returns a set with the parts of both a and b, so that the documents of both are ranked together, with
// statistics over all of them. It fails if a part of a has the same id as a part of b.
func Union(a, b *Set) (*Set, error) {
	switch {
	case len(a.parts) == 0:
		return b, nil
	case len(b.parts) == 0:
		return a, nil
	}
	out := &edit{&Set{index: map[uint64]int{}}}
	for _, s := range []*Set{a, b} {
		for _, p := range s.parts {
			if _, twice := out.index[p.ID]; twice {
				return nil, broken("two parts have the id %d", p.ID)
			}
			out.add(p)
		}
	}
	return out.Set, nil
}
