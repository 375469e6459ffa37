package working

import (
	"cmp"
	"slices"
)

// Play makes the changes that Judge returned in this or another process. version must be higher than all earlier
// versions. t is the moment at which the changes were judged.
func (s *State) Play(t Moment, version uint64, d *Delta) {
	if d.Empty() {
		return
	}
	s.version, s.tick = version, max(s.tick, t.Tick)
	for _, c := range d.Changes {
		s.play(t, c)
	}
}

func (s *State) play(t Moment, c Change) {
	switch c.Kind {
	case ChangeAttach:
		if s.created == 0 {
			s.created = t.Time
		}
	case ChangePut:
		s.put(c.Name, cell{value: c.Value, version: s.version, updated: t.Time, deadline: c.Deadline})
	case ChangeDelete:
		s.drop(c.Name)
	case ChangeAppend:
		s.notes = append(s.notes, note{seq: s.version, text: c.Text, time: t.Time})
		s.soil(noteName(s.version))
		s.trim(s.overflow(len(s.notes), c.Keep))
	case ChangeEmpty:
		s.trim(len(s.notes))
	case ChangeMark:
		s.mark(t, c.ID, c.Text)
	case ChangeDiscard:
		s.discard(c.ID)
	case ChangeRestore:
		s.restore(t, c.ID)
	case ChangeDrop:
		version, tick := s.version, s.tick
		*s = *NewState()
		s.use.init()
		s.version, s.tick = version, tick
	}
}

// trim removes the oldest n entries of the scratchpad.
func (s *State) trim(n int) {
	for _, e := range s.notes[:n] {
		s.soil(noteName(e.seq))
	}
	clear(s.notes[:n])
	if s.notes = s.notes[n:]; len(s.notes) == 0 {
		s.notes = nil
	}
}

// findNote returns the scratchpad entry that has the given name in checkpoints, or nil if no entry has this name.
func (s *State) findNote(name string) *note {
	i, ok := slices.BinarySearchFunc(s.notes, noteSeq(name),
		func(n note, seq uint64) int { return cmp.Compare(n.seq, seq) })
	if !ok {
		return nil
	}
	return &s.notes[i]
}

// Complete adds to a Result of Judge the fields that are known only after Play.
func (s *State) Complete(op Op, res *Result) {
	switch op := op.(type) {
	case OpAttach:
		res.Created = fromMicro(s.created)
	case OpPut:
		for i := range res.Items {
			if it := s.items[res.Items[i].Name]; it != nil && it.version == s.version {
				res.Items[i].Version, res.Items[i].Updated = it.version, fromMicro(it.updated)
			}
		}
	case OpAppend:
		res.Notes = []Note{s.notes[len(s.notes)-1].public()}
	case OpCheckpoint:
		res.Checkpoints = []CheckpointInfo{s.findMark(op.ID).info()}
	case OpRestore:
		res.Checkpoints = []CheckpointInfo{s.findMark(op.Undo).info()}
	}
}
