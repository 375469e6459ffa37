package words

// Before returns the id of the last live document in a session that is before the given time and id. It skips the ids
// in except. The bool result reports whether there is such a document.
func (v *Set) Before(session string, time int64, id string, except map[string]bool) (string, bool, error) {
	e := &edit{v} // it only looks
	at, ok, _, _, err := e.findNeighbours(session, time, id, -1)
	for err == nil && ok {
		b, err := v.parts[at.part].Seg.ID(at.row)
		if err != nil {
			return "", false, err
		}
		if is := string(b); !except[is] {
			return is, true, nil
		}
		if at, ok, err = v.next(at, true); err != nil {
			return "", false, err
		}
	}
	return "", false, err
}

// Neighbours returns the ids of the live documents directly before and after the row ref, in the session of that
// row.
func (v *Set) Neighbours(ref Ref) (ids []string, err error) {
	for i, p := range v.parts {
		if p.ID != ref.Part {
			continue
		}
		for _, before := range [...]bool{true, false} {
			to, ok, err := v.next(place{i, ref.Row}, before)
			if err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
			id, err := v.parts[to.part].Seg.ID(to.row)
			if err != nil {
				return nil, err
			}
			ids = append(ids, string(id))
		}
	}
	return ids, nil
}
