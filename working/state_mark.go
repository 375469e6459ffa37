package working

import (
	"cmp"
	"maps"
	"slices"

	"github.com/varve-db/varve/errs"
)

// mark is a checkpoint of working memory. It has the items that differ from those of the previous checkpoint, or all
// items if it is the first checkpoint. It shares the cells, which never change, with the current state, so it does not
// copy values.
type mark struct {
	id, description string
	time, tick      int64
	cells           map[string]*cell // the items by name; nil: removed since the previous mark
	keys, notes     int
}

func (m *mark) info() CheckpointInfo {
	return CheckpointInfo{ID: m.id, Description: m.description, Created: fromMicro(m.time),
		Keys: m.keys, Notes: m.notes, Changed: len(m.cells)}
}

func (s *State) indexMark(id string) int {
	return slices.IndexFunc(s.marks, func(m *mark) bool { return m.id == id })
}

func (s *State) findMark(id string) *mark { return s.marks[s.indexMark(id)] }

func (s *State) judgeMark(op Op, d *Delta) (res Result, err error) {
	var id, undo string
	var keep int
	switch op := op.(type) {
	case OpDiscard:
		if s.indexMark(op.ID) >= 0 {
			d.add(Change{Kind: ChangeDiscard, ID: op.ID})
			res.N = 1
		}
		return res, nil
	case OpCheckpoint:
		undo, keep = op.ID, op.Keep
		d.add(Change{Kind: ChangeMark, ID: op.ID, Text: op.Description})
	case OpRestore:
		if s.indexMark(op.ID) < 0 {
			return res, &CheckpointError{ID: op.ID, Err: ErrNotFound}
		}
		id, undo, keep = op.ID, op.Undo, op.Keep
		d.add(Change{Kind: ChangeMark, ID: op.Undo, Text: op.Description})
		d.add(Change{Kind: ChangeRestore, ID: op.ID})
	}
	if s.indexMark(undo) >= 0 {
		return res, &CheckpointError{ID: undo, Err: errs.ErrConflict}
	}
	for i, n := 0, len(s.marks)+1; keep > 0 && n > keep && i < len(s.marks); i++ {
		if old := s.marks[i].id; old != id {
			d.add(Change{Kind: ChangeDiscard, ID: old})
			n--
		}
	}
	return res, nil
}

// mark makes a checkpoint at the moment t. The checkpoint has the items that changed since the newest checkpoint,
// or all items if it is the first one.
func (s *State) mark(t Moment, id, description string) {
	c := s.count(t.Tick)
	m := &mark{id: id, description: description, time: t.Time, tick: t.Tick, keys: c.Keys, notes: c.Notes,
		cells: map[string]*cell{}}
	if len(s.marks) > 0 {
		for name := range s.dirty {
			m.cells[name] = s.present(name, t.Tick)
		}
	} else {
		m.cells = s.all(t.Tick)
	}
	s.marks = append(s.marks, m)
	s.dirty = map[string]struct{}{}
}

// present returns the current cell of an item or of a scratchpad entry, or nil if there is no item or entry with this
// name, or if the item has expired at tick.
func (s *State) present(name string, tick int64) *cell {
	if name[0] == notePrefix {
		if n := s.findNote(name); n != nil {
			return n.cell()
		}
	} else if it := s.live(name, tick); it != nil {
		c := it.cell
		return &c
	}
	return nil
}

func (n *note) cell() *cell {
	return &cell{value: []byte(n.text), version: n.seq, updated: n.time}
}

func (s *State) all(tick int64) map[string]*cell {
	all := make(map[string]*cell, len(s.items)+len(s.notes))
	for name, it := range s.items {
		if !it.over(tick) {
			c := it.cell
			all[name] = &c
		}
	}
	for i := range s.notes {
		all[noteName(s.notes[i].seq)] = s.notes[i].cell()
	}
	return all
}

// content returns the complete content of checkpoint i, merged from all checkpoints up to i. It omits the items that
// had expired when the checkpoint was made.
func (s *State) content(i int) map[string]*cell {
	all := map[string]*cell{}
	for _, m := range s.marks[:i+1] {
		maps.Copy(all, m.cells)
	}
	tick := s.marks[i].tick
	maps.DeleteFunc(all, func(_ string, c *cell) bool { return c == nil || c.over(tick) })
	return all
}

// discard deletes a mark. Each mark has only the differences from the previous mark, so discard merges the items of
// the deleted mark into the next mark. If the newest mark is deleted, its items count as changed since the mark before
// it.
func (s *State) discard(id string) {
	i := s.indexMark(id)
	if i < 0 {
		return
	}
	m := s.marks[i]
	switch {
	case i+1 < len(s.marks):
		next := s.marks[i+1]
		maps.Copy(m.cells, next.cells)
		if next.cells = m.cells; i == 0 {
			maps.DeleteFunc(next.cells, func(_ string, c *cell) bool { return c == nil })
		}
	case i == 0:
		s.dirty = nil
	default:
		for name := range m.cells {
			s.dirty[name] = struct{}{}
		}
	}
	s.marks = slices.Delete(s.marks, i, i+1)
}

// restore makes the content of the checkpoint id the current state, at the moment t. An item stays unchanged if it has
// the same version in the checkpoint and in the current state, and does not expire. A value that expires gets the
// lifetime that it had left when the checkpoint was made.
func (s *State) restore(t Moment, id string) {
	i := s.indexMark(id)
	if i < 0 {
		return
	}
	want, then := s.content(i), s.marks[i].tick
	for _, name := range slices.Sorted(maps.Keys(s.items)) {
		if want[name] == nil {
			s.drop(name)
		}
	}
	var notes []note
	for _, name := range slices.Sorted(maps.Keys(want)) {
		c := *want[name]
		if name[0] == notePrefix {
			notes = append(notes, note{seq: c.version, text: string(c.value), time: c.updated})
			if s.findNote(name) == nil {
				s.soil(name)
			}
			continue
		}
		if it := s.items[name]; it != nil && it.version == c.version && it.deadline == 0 && c.deadline == 0 {
			continue
		}
		if c.version = s.version; c.deadline != 0 {
			c.deadline = deadline(t.Tick, c.ticksLeft(then))
		}
		s.put(name, c)
	}
	for _, n := range s.notes {
		if want[noteName(n.seq)] == nil {
			s.soil(noteName(n.seq))
		}
	}
	s.notes = notes
}

func (s *State) listMarks() Result {
	res := Result{Checkpoints: make([]CheckpointInfo, len(s.marks))}
	for i, m := range s.marks {
		res.Checkpoints[i] = m.info()
	}
	return res
}

func (s *State) load(now Moment, op OpLoad) (res Result, err error) {
	all, tick := map[string]*cell(nil), now.Tick
	if op.ID == "" {
		all = s.all(tick)
	} else {
		i := s.indexMark(op.ID)
		if i < 0 {
			return res, &CheckpointError{ID: op.ID, Err: ErrNotFound}
		}
		all, tick = s.content(i), s.marks[i].tick
		res.Checkpoints = []CheckpointInfo{s.marks[i].info()}
	}
	for name, c := range all {
		if name[0] != notePrefix {
			res.Items = append(res.Items, c.public(name, tick, true))
			continue
		}
		res.Notes = append(res.Notes, Note{Seq: c.version, Text: string(c.value), Time: fromMicro(c.updated)})
	}
	sortItems(res.Items)
	slices.SortFunc(res.Notes, func(a, b Note) int { return cmp.Compare(a.Seq, b.Seq) })
	return res, nil
}
