package vector

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index/table"
	"github.com/varve-db/varve/internal/refcount"
	"github.com/varve-db/varve/internal/vfs"
)

// ErrForeign means that the vector files belong to another store.
var ErrForeign = table.ErrForeign

// Set is an immutable state of the vector files at one LSN: the base, and the delta with the changes since the base. A
// reader must hold a reference.
type Set struct {
	levels [2]*level // base and delta; nil if missing
	shape            // rows is the number of live rows of both
	lsn    uint64
	count  [kinds]int64
	refs   refcount.Count

	once   sync.Mutex
	hidden bitmap // the rows of the base that the delta hides; nil before ready
	done   atomic.Bool
}

const (
	base = iota
	delta
)

// loadTries is the maximum number of attempts of Load. An attempt can fail because a writer puts new vector files in
// place at the same time.
const loadTries = 8

// Load maps the vector files of a store into memory. If there are no files, it returns an empty set with LSN 0. If the
// files are damaged, belong to another store, or do not belong together, it returns an error. The new set shares the
// files that prev already has open; prev may be nil. The caller owns one reference to the new set.
func Load(fsys vfs.FS, dir, store string, prev *Set) (s *Set, err error) {
	for range loadTries {
		if s, err = loadOnce(fsys, dir, store, prev); !errors.Is(err, errPair) {
			return s, err
		}
	}
	return nil, err
}

// Empty returns a set without files.
func Empty() *Set {
	s := &Set{}
	s.refs.Start()
	return s
}

// loadOnce makes one attempt of Load. It opens the mapping file of the delta before that of the base, because a merge
// puts the new base in place before it removes the delta.
func loadOnce(fsys vfs.FS, dir, store string, prev *Set) (_ *Set, err error) {
	s := Empty()
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Release())
		}
	}()
	for _, i := range []int{delta, base} {
		if s.levels[i], err = openLevel(fsys, dir, store, i, prev); err != nil {
			return nil, err
		}
	}
	b, d := s.levels[base], s.levels[delta]
	if d != nil && (b == nil || d.t.Meta().From > b.t.Meta().LSN || d.t.Meta().LSN <= b.t.Meta().LSN) {
		s.levels[delta] = nil
		if err := d.release(); err != nil {
			return nil, err
		}
		d = nil
	}
	for i, l := range s.levels {
		if l != nil && l.f == nil {
			if err := l.openFAISS(fsys, dir, levelNames[i]); err != nil {
				return nil, err
			}
		}
	}
	return s, s.fill()
}

// openLevel opens the mapping file of the base or the delta; i is the level. If the file is the same as in prev, it
// returns the level of prev with another reference. It returns nil if the file does not exist.
func openLevel(fsys vfs.FS, dir, store string, i int, prev *Set) (*level, error) {
	if prev != nil && prev.levels[i] != nil {
		if had := prev.levels[i]; !had.next && had.t.Stands(fsys, dir) && had.retain() {
			return had, nil
		}
	}
	t, err := table.Open(fsys, dir, levelNames[i].mapping, Schema())
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	l := &level{t: t}
	l.refs.Start()
	if got := t.Meta().Store; got != store {
		return nil, errors.Join(fmt.Errorf("%s %w: the file belongs to store %s, but this is store %s",
			t.Name(), ErrForeign, got,
			store), l.release())
	}
	return l, nil
}

// fill sets the shape, the LSN and the counts of the set from its base and delta. It returns an error if base and
// delta, or a mapping file and its FAISS file, do not belong together.
func (s *Set) fill() error {
	b, d := s.levels[base], s.levels[delta]
	if b == nil {
		return nil
	}
	top := b
	if d != nil {
		top = d
		if d.f.dim != b.f.dim || d.f.metric != b.f.metric {
			return corrupt(DeltaMapping,
				fmt.Errorf("the delta has %d dimensions and metric %v, but the base has %d dimensions and metric %v",
					d.f.dim, d.f.metric, b.f.dim, b.f.metric))
		}
	}
	s.shape = shape{metric: top.f.metric, dim: top.f.dim}
	s.lsn = top.t.Meta().LSN
	for kind := range kinds {
		s.count[kind] = top.t.Live(int(kind))
		s.rows += s.count[kind]
	}
	if lines := b.t.Lines(0) + b.t.Lines(1); lines != b.f.rows {
		return corrupt(BaseMapping, fmt.Errorf("the mapping has %d ids, but %s has %d vectors", lines, b.f.name, b.f.rows))
	}
	return nil
}

// ready computes which rows of the base are replaced or deleted by the delta. It does so only once, when the set is
// first used.
func (s *Set) ready() error {
	if s.done.Load() {
		return nil
	}
	s.once.Lock()
	defer s.once.Unlock()
	if s.done.Load() {
		return nil
	}
	b, d := s.levels[base], s.levels[delta]
	if b != nil {
		if err := b.lines(false); err != nil {
			return err
		}
	}
	if d != nil {
		if err := d.lines(true); err != nil {
			return err
		}
		hidden := newBitmap(b.f.rows)
		for kind := range kinds {
			w := d.t.Walk(int(kind))
			for {
				key, _, ok, err := w.Next()
				if err != nil {
					return err
				}
				if !ok {
					break
				}
				row, _, _, err := b.find(kind, string(key))
				if err != nil {
					return err
				}
				if row >= 0 {
					hidden.set(row)
				}
			}
		}
		s.hidden = hidden
	}
	s.done.Store(true)
	return nil
}

// LSN returns the position in the log up to which the set contains all changes.
func (s *Set) LSN() uint64 { return s.lsn }

// Exists reports whether the set has files.
func (s *Set) Exists() bool { return s.levels[base] != nil }

// Count returns the number of vectors of a kind.
func (s *Set) Count(kind Kind) int64 { return s.count[kind] }

// Dim returns the number of dimensions, or 0 if the set has no files.
func (s *Set) Dim() int { return s.dim }

// Metric returns the metric of the vectors.
func (s *Set) Metric() Metric { return s.metric }

// Model returns the name of the embedding model of the vectors, or "" if the model is unknown.
func (s *Set) Model() string {
	if l := s.top(); l != nil {
		return l.x.Model
	}
	return ""
}

// Chain returns the chain hash of the log at the set's LSN, in hex.
func (s *Set) Chain() string {
	if l := s.top(); l != nil {
		return l.x.Chain
	}
	return ""
}

// Bytes returns the total size of the set's files.
func (s *Set) Bytes() int64 {
	n := int64(0)
	for _, l := range s.levels {
		if l != nil {
			n += l.t.Size() + l.f.size()
		}
	}
	return n
}

func (s *Set) top() *level {
	if s.levels[delta] != nil {
		return s.levels[delta]
	}
	return s.levels[base]
}

// ID returns the FAISS id of a key's vector, or 0 if the key has no vector.
func (s *Set) ID(kind Kind, key string) (int64, error) {
	_, _, id, err := s.find(kind, key)
	return id, err
}

// find returns the level (base or delta) that has the vector of a key, the vector's row in the FAISS file of that
// level, and the vector's FAISS id. If the key has no vector, level is -1.
func (s *Set) find(kind Kind, key string) (level int, row, id int64, err error) {
	enc, err := table.EncodeKey(key)
	if err != nil {
		return -1, -1, 0, err
	}
	if err := s.ready(); err != nil {
		return -1, -1, 0, err
	}
	for _, i := range []int{delta, base} {
		if s.levels[i] == nil {
			continue
		}
		row, id, has, err := s.levels[i].find(kind, enc)
		if err != nil {
			return -1, -1, 0, err
		}
		if row >= 0 {
			return i, row, id, nil
		}
		if has {
			break
		}
	}
	return -1, -1, 0, nil
}

// Row appends the row of a key's vector to dst, as the FAISS file stores it, and returns the FAISS id of the vector. ok
// is false if the key has no vector.
func (s *Set) Row(dst []byte, kind Kind, key string) (_ []byte, id int64, ok bool, err error) {
	at, row, id, err := s.find(kind, key)
	if err != nil || at < 0 {
		return dst, 0, false, err
	}
	dst, err = s.levels[at].f.row(dst, row)
	return dst, id, err == nil, err
}

// Retain takes another reference. It returns false if the last reference was already released.
func (s *Set) Retain() bool { return s.refs.Retain() }

// Release releases a reference. The release of the last reference unmaps the files.
func (s *Set) Release() error {
	if !s.refs.Release() {
		return nil
	}
	return errors.Join(s.levels[base].release(), s.levels[delta].release())
}

func corrupt(path string, err error) error {
	return &errs.CorruptionError{Path: path, Offset: -1, Err: err}
}
