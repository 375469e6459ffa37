package working

// makeRoom adds to the delta the removals that are necessary to keep the limits: first of expired items, then, if Evict
// is set, of the least recently used items. If that is not enough, it returns a *LimitError.
func (s *State) makeRoom(tick int64, r *Request, d *Delta) error {
	lim := r.Limits
	if lim.Keys <= 0 && lim.Bytes <= 0 {
		return nil
	}
	keys, bytes := s.keys, s.bytes
	named := map[string]int64{} // sizes after the delta, by name; -1: removed
	adds := false
	for _, c := range d.Changes {
		if !isUser(c.Name) {
			continue
		}
		was, seen := named[c.Name]
		if it := s.items[c.Name]; !seen && it != nil {
			was, seen = size(c.Name, it.value), true
		} else if !seen {
			was = -1
		}
		is := int64(-1)
		if c.Kind == ChangePut {
			is = size(c.Name, c.Value)
		}
		if was >= 0 {
			keys, bytes = keys-1, bytes-was
		}
		if is >= 0 {
			keys, bytes = keys+1, bytes+is
		}
		adds = adds || is > was
		named[c.Name] = is
	}
	full := func() bool {
		return lim.Keys > 0 && keys > lim.Keys || lim.Bytes > 0 && bytes > lim.Bytes
	}
	if !adds || !full() {
		return nil
	}
	gone := map[string]bool{}
	out := func(it *item) {
		if _, ok := named[it.name]; !ok && isUser(it.name) && !gone[it.name] {
			gone[it.name] = true
			keys, bytes = keys-1, bytes-size(it.name, it.value)
			d.add(Change{Kind: ChangeDelete, Name: it.name})
		}
	}
	s.expiry.over(tick, out)
	if lim.Evict {
		for it := range s.use.all {
			if !full() {
				break
			}
			out(it)
		}
	}
	switch {
	case !full():
		return nil
	case lim.Keys > 0 && keys > lim.Keys:
		return &LimitError{Scope: r.Scope, What: "keys", Limit: int64(lim.Keys), Need: int64(keys)}
	}
	return &LimitError{Scope: r.Scope, What: "bytes", Limit: lim.Bytes, Need: bytes}
}
