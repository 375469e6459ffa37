package vector

import (
	"bytes"
	"strconv"

	"github.com/varve-db/varve/index/table"
)

// merged is one line of the files that are being written: a key with its vector or, only in a delta, with a deletion.
type merged struct {
	enc  []byte // encoded key, valid until the next call
	id   int64  // FAISS id of the vector; 0: the vector was deleted
	from int    // source of the vector: base, delta or edited
	row  int64  // row of the vector in its source
	edit Edit
}

// edited is the value of merged.from if the vector comes from an edit and not from the base or the delta.
const edited = 2

// merger merges the keys of base, delta and edits in order, for one kind of document.
type merger struct {
	s       *Set
	kind    Kind
	asDelta bool
	skip    map[string]bool // keys of edits that have no vector after all

	lines [2]*table.Walk
	key   [2][]byte
	value [2][]byte
	has   [2]bool
	rows  [2]int64 // row of the current line

	edits Edits
	edit  Edit
	enc   []byte
	hasE  bool

	cur []byte // key that next has last returned
}

func (s *Set) merge(kind Kind, p Plan, asDelta bool, skip map[string]bool) (*merger, error) {
	m := &merger{s: s, kind: kind, asDelta: asDelta, skip: skip}
	for i, l := range s.levels {
		if l == nil || asDelta && i == base {
			continue
		}
		m.lines[i] = l.t.Walk(int(kind))
		m.rows[i] = l.first[kind] - 1
		if err := m.step(i); err != nil {
			return nil, err
		}
	}
	var err error
	if m.edits, err = p.Edits(kind); err != nil {
		return nil, err
	}
	return m, m.stepEdit()
}

// step moves to the next line of a level's mapping file. i is the level: base or delta.
func (m *merger) step(i int) (err error) {
	m.key[i], m.value[i], m.has[i], err = m.lines[i].Next()
	if m.has[i] && !isDead(m.value[i]) {
		m.rows[i]++
	}
	return err
}

func (m *merger) stepEdit() (err error) {
	if m.edit, m.hasE, err = m.edits.Next(); err != nil || !m.hasE {
		return err
	}
	enc, err := table.EncodeKey(m.edit.Key)
	m.enc = append(m.enc[:0], enc...)
	return err
}

// next returns the next line of the files that are being written, or false at the end.
func (m *merger) next() (c merged, ok bool, err error) {
	for m.has[base] || m.has[delta] || m.hasE {
		// Take the smallest key. If several levels have it, take the newest of these levels.
		at := -1
		var key []byte
		for i := range 2 {
			if m.has[i] && (at < 0 || bytes.Compare(m.key[i], key) <= 0) {
				at, key = i, m.key[i]
			}
		}
		if m.hasE && (at < 0 || bytes.Compare(m.enc, key) <= 0) {
			at, key = edited, m.enc
		}
		m.cur = append(m.cur[:0], key...)
		c = merged{enc: m.cur, from: at}
		if at == edited {
			if c.edit = m.edit; !m.skip[m.edit.Key] {
				c.id = m.edit.ID
			}
		} else if !isDead(m.value[at]) {
			c.row = m.rows[at]
			if c.id, err = parseID(m.value[at]); err != nil {
				return c, false, corrupt(m.s.levels[at].t.Name(), err)
			}
		}
		if err := m.pass(c.enc); err != nil {
			return c, false, err
		}
		if c.id != 0 {
			return c, true, nil
		}
		if m.asDelta {
			// The delta needs a line for the deletion only if the base has a row for the key.
			row, _, _, err := m.s.levels[base].find(m.kind, string(c.enc))
			if err != nil || row >= 0 {
				return c, err == nil, err
			}
		}
	}
	return merged{}, false, nil
}

// pass skips the given key: each of base, delta and edits whose current key is this key moves to its next key.
func (m *merger) pass(key []byte) error {
	for i := range 2 {
		if m.has[i] && bytes.Equal(m.key[i], key) {
			if err := m.step(i); err != nil {
				return err
			}
		}
	}
	if m.hasE && bytes.Equal(m.enc, key) {
		return m.stepEdit()
	}
	return nil
}

// inBase reports whether the base has a vector for a key. If so, a line of the delta for the same key replaces or
// deletes that vector.
func (m *merger) inBase(enc []byte) (bool, error) {
	if m.s.levels[base] == nil {
		return false, nil
	}
	row, _, _, err := m.s.levels[base].find(m.kind, string(enc))
	return row >= 0, err
}

func appendID(dst []byte, id int64) []byte {
	if id == 0 {
		return append(dst, deadLine...)
	}
	return strconv.AppendInt(dst, id, 10)
}
