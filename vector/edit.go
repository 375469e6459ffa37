package vector

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/varve-db/varve/index/table"
)

// Edit is a change of one vector: the vector of the document with this Key was set or removed.
type Edit struct {
	Key    string
	ID     int64  // FAISS id of the vector; 0: the vector was removed
	Handle uint64 // value that Plan.Vector gets with the edit; this package does not use it
}

// Edits is an iterator over edits. Next returns one edit after another, in the order of their encoded keys, at most
// one for each key. After the last edit, ok is false.
type Edits interface {
	Next() (e Edit, ok bool, err error)
}

// Plan has the changes to apply when new vector files are written.
type Plan struct {
	// Edits returns the edits of a kind. It is called twice, and must return the same edits both times.
	Edits func(kind Kind) (Edits, error)
	// Vector appends the vector of an edit to dst, without scaling it. It is called once for each edit that has a
	// vector. ok is false if the edit has no vector after all: then the key gets no row.
	Vector func(dst []float32, kind Kind, e Edit) (_ []float32, ok bool, err error)
}

// List returns a Plan for lists of edits in memory: edits[kind] has the edits of each kind, in any order, at most one
// for each key. vector is the Plan's function Vector.
func List(edits [2][]Edit, vector func(dst []float32, kind Kind, e Edit) ([]float32, bool, error)) (Plan, error) {
	var lists [kinds][]encodedEdit
	for kind := range kinds {
		for _, e := range edits[kind] {
			enc, err := table.EncodeKey(e.Key)
			if err != nil {
				return Plan{}, err
			}
			lists[kind] = append(lists[kind], encodedEdit{e, enc})
		}
		slices.SortFunc(lists[kind], func(a, b encodedEdit) int { return cmp.Compare(a.enc, b.enc) })
	}
	return Plan{
		Edits:  func(kind Kind) (Edits, error) { l := listed(lists[kind]); return &l, nil },
		Vector: vector,
	}, nil
}

type encodedEdit struct {
	Edit
	enc string
}

type listed []encodedEdit

func (l *listed) Next() (Edit, bool, error) {
	if len(*l) == 0 {
		return Edit{}, false, nil
	}
	e := (*l)[0]
	*l = (*l)[1:]
	return e.Edit, true, nil
}

// Changes returns the edits that would change the set. It omits the removal of a key that has no vector, and an edit
// whose vector has the same FAISS id and the same bits as in the set. Equal ids alone do not suffice, because an import
// may use an id again for another vector.
func (s *Set) Changes(kind Kind, edits []Edit,
	vector func(dst []float32, kind Kind, e Edit) ([]float32, bool, error)) ([]Edit, error) {
	var left []Edit
	var v []float32
	var old, now []byte
	for _, e := range edits {
		level, at, id, err := s.find(kind, e.Key)
		if err != nil {
			return nil, err
		}
		if e.ID == 0 && level < 0 {
			continue
		}
		if e.ID != 0 && level >= 0 && e.ID == id {
			var ok bool
			if v, ok, err = vector(v[:0], kind, e); err != nil {
				return nil, err
			}
			if ok && len(v) == s.dim {
				if old, err = s.levels[level].f.row(old[:0], at); err != nil {
					return nil, err
				}
				if now = s.metric.Row(now[:0], v); bytes.Equal(old, now) {
					continue
				}
			}
		}
		left = append(left, e)
	}
	return left, nil
}

// Walk calls f, in the order of the encoded keys, with each document key of a kind that has a vector, and with the
// FAISS id of the vector. It stops at the first error of f and returns that error.
func (s *Set) Walk(kind Kind, f func(key string, id int64) error) error {
	if err := s.ready(); err != nil {
		return err
	}
	m, err := s.merge(kind, Plan{Edits: func(Kind) (Edits, error) { return new(listed), nil }}, false, nil)
	for err == nil {
		var c merged
		var ok bool
		if c, ok, err = m.next(); err != nil || !ok {
			return err
		}
		key, _ := table.Decode(c.enc)
		err = f(key, c.id)
	}
	return err
}
