package working

// Bytes returns the approximate number of bytes of values, texts and checkpoints in the document of
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

// Loses reports whether changes, played one after another at a tick, remove a part of the current state: a value that
// is replaced, deleted or expired, an entry of the scratchpad, or a checkpoint. A restore also counts, because it may
// lead to the deletion of old checkpoints.
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
