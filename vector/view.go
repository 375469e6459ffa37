package vector

import (
	"bytes"
	"fmt"
	"slices"
	"sync"

	"github.com/varve-db/varve/index/table"
)

// View is a Set together with an overlay: the vectors in memory that changed after the files were written. It is safe
// for concurrent use, also while vectors are added.
type View struct {
	set    *Set
	metric Metric
	dim    int

	mu     sync.RWMutex
	hidden [2]bitmap // for each level, the rows whose vectors the overlay replaces or deletes
	over   [kinds]overlay
	size   int // number of keys in the overlay
}

// overlay has, in memory, the vectors of one kind that changed after the files were written. A key has at most one row:
// a newer vector of the key overwrites the row.
type overlay struct {
	rows []byte
	keys []string       // encoded key of each row
	ids  []int64        // FAISS id of the vector in each row; 0: the vector was deleted
	at   map[string]int // row of each encoded key, or gone
}

// gone is the value of overlay.at for a key whose vector was deleted and never had a row in the overlay.
const gone = -1

// NewView returns a View of a set with an empty overlay. The View takes over the caller's reference to the set. metric
// and dim are used only if the set has no files: they are those of the store. dim 0 means that the number of dimensions
// is not known yet.
func NewView(set *Set, metric Metric, dim int) (*View, error) {
	if err := set.ready(); err != nil {
		return nil, err
	}
	v := &View{set: set, metric: metric, dim: dim}
	for i, l := range set.levels {
		if l != nil {
			v.metric, v.dim = set.metric, set.dim
			v.hidden[i] = newBitmap(l.f.rows)
		}
	}
	for kind := range v.over {
		v.over[kind].at = map[string]int{}
	}
	return v, nil
}

// Set returns the set of the View. The set is valid as long as the View.
func (v *View) Set() *Set { return v.set }

// Retain takes another reference to the set. It returns false if the last reference was already released.
func (v *View) Retain() bool { return v.set.Retain() }

// Release releases a reference to the set.
func (v *View) Release() error { return v.set.Release() }

// Dim returns the number of dimensions, or 0 as long as it is not known.
func (v *View) Dim() int {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.dim
}

// Overlay returns the number of keys whose vector changed after the vector files were written.
func (v *View) Overlay() int {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.size
}

// Put sets the vector of a key. The vector may be equal to the previous one. If the number of dimensions is not known
// yet, the vector determines it. If the vector has another number of dimensions, Put removes the key's vector and
// returns an error that matches ErrDimension.
func (v *View) Put(kind Kind, key string, id int64, vector []float32) error {
	enc, err := table.EncodeKey(key)
	if err != nil {
		return err
	}
	v.mu.Lock()
	if v.dim == 0 {
		v.dim = len(vector)
	}
	dim := v.dim
	v.mu.Unlock()
	if len(vector) != dim {
		if err := v.Delete(kind, key); err != nil {
			return err
		}
		return fmt.Errorf("%w: the vector has %d dimensions, but the vectors of the store have %d", ErrDimension,
			len(vector), dim)
	}
	row := v.metric.Row(make([]byte, 0, 4*dim), vector)
	level, at, had, err := v.set.find(kind, key)
	if err != nil {
		return err
	}
	same := false
	if level >= 0 && had == id {
		old, err := v.set.levels[level].f.row(nil, at)
		if err != nil {
			return err
		}
		same = bytes.Equal(old, row)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	o := &v.over[kind]
	i, known := o.at[enc]
	if !known {
		if same {
			return nil // the set already has this vector
		}
		v.hide(level, at)
		i = gone
		v.size++
	}
	if i == gone {
		o.at[enc] = len(o.keys)
		o.keys, o.ids, o.rows = append(o.keys, enc), append(o.ids, id), append(o.rows, row...)
		return nil
	}
	o.ids[i] = id
	copy(o.rows[i*4*dim:], row)
	return nil
}

// Delete removes the vector of a key: the overlay records that the key has no vector any more.
func (v *View) Delete(kind Kind, key string) error {
	enc, err := table.EncodeKey(key)
	if err != nil {
		return err
	}
	level, at, _, err := v.set.find(kind, key)
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	o := &v.over[kind]
	i, known := o.at[enc]
	switch {
	case known && i != gone:
		o.ids[i] = 0
	case !known && level >= 0:
		v.hide(level, at)
		v.size++
		o.at[enc] = gone
	}
	return nil
}

// hide marks a row of the base or the delta as replaced or deleted by the overlay. It does nothing if level is -1.
func (v *View) hide(level int, row int64) {
	if level >= 0 {
		v.hidden[level].set(row)
	}
}

// Row appends the current row of a key's vector to dst and returns the FAISS id of the vector. ok is false if the key
// has no vector.
func (v *View) Row(dst []byte, kind Kind, key string) (_ []byte, id int64, ok bool, err error) {
	enc, err := table.EncodeKey(key)
	if err != nil {
		return dst, 0, false, err
	}
	v.mu.RLock()
	o := &v.over[kind]
	i, known := o.at[enc]
	if known && i != gone && o.ids[i] != 0 {
		dst, id = append(dst, o.rows[i*4*v.dim:(i+1)*4*v.dim]...), o.ids[i]
	}
	v.mu.RUnlock()
	if known {
		return dst, id, id != 0, nil
	}
	return v.set.Row(dst, kind, key)
}

// Count returns the current number of vectors of a kind.
func (v *View) Count(kind Kind) int64 {
	v.mu.RLock()
	defer v.mu.RUnlock()
	n := v.set.count[kind]
	o := &v.over[kind]
	for _, id := range o.ids {
		if id != 0 {
			n++
		}
	}
	for i, l := range v.set.levels {
		if l == nil {
			continue
		}
		for row := l.first[kind]; row < l.end(kind); row++ {
			if v.hidden[i].has(row) {
				n--
			}
		}
	}
	return n
}

// end returns the index of the row after the last row of a kind.
func (l *level) end(kind Kind) int64 { return l.first[kind+1] }

// Metric returns the metric of the vectors.
func (v *View) Metric() Metric { return v.metric }

// Walk calls f with each document key of a kind that has a vector. It stops at the first error of f and returns that
// error. The keys that the overlay has at the beginning of the call come last.
func (v *View) Walk(kind Kind, f func(key string) error) error {
	v.mu.RLock()
	o := &v.over[kind]
	known := make(map[string]bool, len(o.at))
	var live []string
	for enc, i := range o.at {
		known[enc] = true
		if i != gone && o.ids[i] != 0 {
			live = append(live, enc)
		}
	}
	v.mu.RUnlock()
	slices.Sort(live)
	err := v.set.Walk(kind, func(key string, _ int64) error {
		if enc, err := table.EncodeKey(key); err != nil || known[enc] {
			return err
		}
		return f(key)
	})
	for _, enc := range live {
		if err != nil {
			return err
		}
		key, _ := table.Decode([]byte(enc))
		err = f(key)
	}
	return err
}
