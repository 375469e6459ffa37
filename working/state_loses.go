package working

// Bytes returns the approximate number of bytes of the values, scratchpad entries and checkpoints in the document of
// the scope.
func (s *State) Bytes() int64 {
	n := s.bytes
	if it := s.items[taskName]; it != nil {
		n += size(taskName, it.value)
	}
	for i := range s.notes {
		n += int64(len(s.notes[i].text))
	}
	for _, m := range s.marks {
		for name, c := range m.cells {
			if c != nil {
				n += size(name, c.value)
			}
		}
	}
	return n
}

// Loses reports whether the changes, played one after another at a tick (see Moment), remove data of the current
// state. Data is removed if a value is replaced, deleted or expires, or if an entry of the scratchpad or a checkpoint
// is deleted. A restore always counts, because it may delete old checkpoints.
func (s *State) Loses(changes []*Delta, tick int64) bool {
	if at, ok := s.Expires(); ok && at <= tick {
		return true
	}
	notes := len(s.notes)
	for _, d := range changes {
		for _, c := range d.Changes {
			switch c.Kind {
			case ChangePut, ChangeDelete:
				if s.items[c.Name] != nil {
					return true
				}
			case ChangeAppend:
				if notes++; len(s.notes) > 0 && s.overflow(notes, c.Keep) > 0 {
					return true
				}
			case ChangeEmpty:
				if len(s.notes) > 0 {
					return true
				}
			case ChangeDiscard, ChangeRestore, ChangeDrop:
				return true
			}
		}
	}
	return false
}
