package table

import "bytes"

// Edits iterates over the changes of one section in the order of their encoded keys, each key once. value is the new
// value; if the section's Dead is true for value, the change deletes the key. ok is false after the last change. key
// and value are valid until the next call.
type Edits interface {
	Next() (key, value []byte, ok bool, err error)
}

// Plan has the changes that are applied to a set of table files when a new file is written.
type Plan struct {
	// Edits is called once for each section, in order, after the previous section is written. It returns the
	// changes of the section.
	Edits func(sec int) (Edits, error)
	// Changed is called for each change of a key with the previous and the new value; nil means that the key
	// does not exist. The bytes are valid during the call only. Changed may be nil.
	Changed func(sec int, key, before, after []byte) error
	// Extra returns the Extra object of the metadata, in place of the one in Target. It is called after all
	// sections are written. It may be nil.
	Extra func() []byte
}

// merge writes a new table file from a set and the plan's edits: either a base (with the delta merged in and
// deletions dropped) or a delta (only what differs from the set's base).
type merge struct {
	s       *Set
	w       *Writer
	plan    Plan
	asDelta bool
	live    []int64
	steps   int // number of changes processed so far
	// Number of the first block of the base that was not verified again for this write.
	verified int
}

// all writes every section of the new file and returns the number of existing keys of each section.
func (m *merge) all() ([]int64, error) {
	m.live = make([]int64, len(m.s.sch.Sections))
	for sec := range m.s.sch.Sections {
		m.live[sec] = m.s.Count(sec)
		e, err := m.plan.Edits(sec)
		if err != nil {
			return nil, err
		}
		if err := m.section(sec, e); err != nil {
			return nil, err
		}
	}
	return m.live, nil
}

func (m *merge) section(sec int, e Edits) error {
	base, delta := newCursor(m.s.base, sec), newCursor(m.s.delta, sec)
	lines := int64(0)
	if m.s.base != nil && !m.asDelta {
		lines = m.s.base.Lines(sec)
	}
	hasD, err := delta.step()
	if err != nil {
		return err
	}
	key, value, hasE, err := e.Next()
	if m.s.sch.Sections[sec].Spare && !hasD && !hasE && err == nil && lines == 0 {
		m.w.Skip()
		return nil
	}
	if err := m.w.Section(); err != nil {
		return err
	}
	for hasD || hasE {
		if err != nil {
			return err
		}
		order := 0
		switch {
		case !hasD:
			order = 1
		case !hasE:
			order = -1
		default:
			order = bytes.Compare(delta.key, key)
		}
		ch := change{key: key, value: value, edited: order >= 0}
		if order < 0 {
			ch.key, ch.value = delta.key, delta.value
		}
		if order <= 0 {
			ch.delta = delta.value
		}
		if m.steps++; m.steps%16 == 0 {
			m.w.turns.Give() // a table is written while commits run, and a commit should not wait for the whole table
		}
		n, err := m.apply(sec, base, ch)
		if err != nil {
			return err
		}
		lines += n
		if order <= 0 {
			if hasD, err = delta.step(); err != nil {
				return err
			}
		}
		if order >= 0 {
			if key, value, hasE, err = e.Next(); err != nil {
				return err
			}
		}
	}
	if err != nil {
		return err
	}
	if !m.asDelta {
		if err := m.copyTo(base, base.hi); err != nil {
			return err
		}
	}
	m.w.sections[m.w.open].lines = lines
	return nil
}

// change is a key whose entry differs between the new file and the base.
type change struct {
	key, value []byte
	delta      []byte // value of the key in the delta, nil if the delta does not have the key
	edited     bool   // the plan changes the key; otherwise only the delta has it
}

// apply writes one change and returns how many lines it adds; a negative number means that it removes lines.
func (m *merge) apply(sec int, base *cursor, ch change) (lines int64, err error) {
	dead := m.s.sch.Sections[sec].Dead
	inBase := false
	if base.t != nil && (ch.edited || !m.asDelta) {
		from := base.next
		if inBase, err = base.seek(ch.key); err != nil {
			return 0, err
		}
		if !m.asDelta {
			if err := m.copyRun(base.t, from, base.at); err != nil {
				return 0, err
			}
		}
	}
	if ch.edited {
		var before, after []byte
		switch {
		case ch.delta != nil && !dead(ch.delta):
			before = ch.delta
		case ch.delta == nil && inBase:
			before = base.value
		}
		if !dead(ch.value) {
			after = ch.value
		}
		if before == nil && after != nil {
			m.live[sec]++
		}
		if before != nil && after == nil {
			m.live[sec]--
		}
		if m.plan.Changed != nil {
			if err := m.plan.Changed(sec, ch.key, before, after); err != nil {
				return 0, err
			}
		}
	}
	if inBase && !m.asDelta {
		lines--
	}
	if m.asDelta || !dead(ch.value) {
		lines++
		err = m.w.Entry(ch.key, ch.value)
	}
	return lines, err
}

// copyTo copies lines of the base file, from the next line of the cursor up to offset end. If there is no base
// file, copyTo does nothing.
func (m *merge) copyTo(base *cursor, end int) error {
	if base.t == nil {
		return nil
	}
	return m.copyRun(base.t, base.next, end)
}

// copyRun copies the whole lines of t from the offset from to the offset to. It verifies their blocks again, even if
// the blocks were verified before: bytes that were damaged since then must not get a new, valid checksum.
func (m *merge) copyRun(t *Table, from, to int) error {
	if from >= to {
		return nil
	}
	for b := from / blockSize; b*blockSize < to; b++ {
		if b < m.verified {
			continue
		}
		if err := t.verifyBlock(b); err != nil {
			return err
		}
		m.verified = b + 1
	}
	return m.w.run(t.data[from:to])
}
