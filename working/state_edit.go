package working

// Edited records that the document of this State was edited by hand, and that version is the version of the edit. All
// items and scratchpad entries that the edit may have changed then count as changed at this version.
func (s *State) Edited(version uint64) {
	s.version = version
	for _, it := range s.items {
		it.version = version
	}
	if len(s.marks) == 0 {
		return
	}
	for name := range s.all(s.tick) {
		s.soil(name)
	}
	for name := range s.content(len(s.marks) - 1) {
		s.soil(name)
	}
}

// Skip increases the version by n. A home calls Skip so that the scope does not use versions that an earlier scope of
// this name may have used.
func (s *State) Skip(n uint64) { s.version += n }

// Use marks items as used, in the same way as a read does.
func (s *State) Use(names []string) {
	for _, name := range names {
		if it := s.items[name]; it != nil && isUser(name) {
			s.use.touch(it)
		}
	}
}
