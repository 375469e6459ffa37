package vector

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/varve-db/varve/index/table"
	"github.com/varve-db/varve/internal/refcount"
	"github.com/varve-db/varve/internal/vfs"
)

// level is the base or the delta: a mapping file, which lists the keys and FAISS ids of the vectors, and its FAISS
// file, which has the vectors. A later Set uses the same level if the files have not changed.
type level struct {
	t     *table.Table
	f     *file
	x     extra
	next  bool // the FAISS file still has the temporary name next
	refs  refcount.Count
	first [kinds + 1]int64 // number of the first row of each kind; the last element is the number of rows

	once sync.Mutex
	dead [kinds][]int64 // line numbers of a delta's lines that record deletions; valid once done is set
	done atomic.Bool
}

// names has the paths of the files of a level: the mapping file, and the FAISS file under its final and its temporary
// name.
type names struct{ mapping, faiss, next string }

var levelNames = [2]names{{BaseMapping, baseFAISS, baseNext}, {DeltaMapping, deltaFAISS, deltaNext}}

// openFAISS opens the FAISS file that belongs to the level's mapping file, which is already open. The FAISS file has
// its final or its temporary name.
func (l *level) openFAISS(fsys vfs.FS, dir string, n names) error {
	x, s, err := parseExtra(l.t.Meta().Extra)
	if err != nil {
		return corrupt(n.mapping, err)
	}
	s.rows = (x.FAISS.Size - headSize - idsHead) / (s.rowSize() + 8)
	if s.rows < 0 || s.size() != x.FAISS.Size {
		return corrupt(n.mapping, fmt.Errorf("a FAISS file of %d dimensions cannot have %d bytes", s.dim, x.FAISS.Size))
	}
	l.x = x
	if l.f, err = openFile(fsys, dir, n.faiss, s, x.FAISS); err == nil {
		return nil
	}
	if !errors.Is(err, errPair) && !missing(err) {
		return err
	}
	var nerr error
	if l.f, nerr = openFile(fsys, dir, n.next, s, x.FAISS); nerr == nil {
		l.next = true
		return nil
	}
	if !missing(nerr) && !errors.Is(nerr, errPair) {
		return nerr
	}
	if missing(err) {
		err = corrupt(n.faiss, fmt.Errorf("%w: %w", errPair, err))
	}
	return err
}

// lines computes l.first and, for a delta, l.dead: the numbers of the lines in the mapping file that record deletions.
// Further calls do nothing once a call has succeeded.
func (l *level) lines(isDelta bool) error {
	if l.done.Load() {
		return nil
	}
	l.once.Lock()
	defer l.once.Unlock()
	if l.done.Load() {
		return nil
	}
	at := int64(0)
	for kind := range kinds {
		l.first[kind] = at
		at += l.t.Lines(int(kind))
		l.dead[kind] = nil
		if !isDelta {
			continue
		}
		w := l.t.Walk(int(kind))
		for line := int64(0); ; line++ {
			_, value, ok, err := w.Next()
			if err != nil {
				return err
			}
			if !ok {
				break
			}
			if isDead(value) {
				l.dead[kind] = append(l.dead[kind], line)
			}
		}
		at -= int64(len(l.dead[kind]))
	}
	l.first[kinds] = at
	if at != l.f.rows {
		return corrupt(l.t.Name(), fmt.Errorf("the mapping has %d ids, but %s has %d vectors", at, l.f.name, l.f.rows))
	}
	l.done.Store(true)
	return nil
}

// find returns the row and the FAISS id of a key's vector. If the level has no vector for the key, row is -1.
// listed reports whether the level has a line for the key; this line may record a deletion. enc must be the key in
// the encoded form of the table.
func (l *level) find(kind Kind, enc string) (row, id int64, listed bool, err error) {
	line, value, err := l.t.FindEncoded(nil, int(kind), enc)
	if err != nil || line < 0 {
		return -1, 0, false, err
	}
	if isDead(value) {
		return -1, 0, true, nil
	}
	if id, err = parseID(value); err != nil {
		return -1, 0, false, corrupt(l.t.Name(), err)
	}
	before, _ := slices.BinarySearch(l.dead[kind], line)
	return l.first[kind] + line - int64(before), id, true, nil
}

// key returns the document key of a row, and the FAISS id of the vector in the row.
func (l *level) key(kind Kind, row int64) (string, int64, error) {
	live := row - l.first[kind]
	dead := l.dead[kind]
	// live is the index of the line among the lines that do not record deletions. n is the number of lines before it
	// that record deletions: those with dead[i]-i ≤ live.
	n := sort.Search(len(dead), func(i int) bool { return dead[i]-int64(i) > live })
	key, value, err := l.t.At(int(kind), live+int64(n))
	if err != nil {
		return "", 0, err
	}
	id, err := parseID(value)
	if err != nil {
		return "", 0, corrupt(l.t.Name(), err)
	}
	return key, id, nil
}

func (l *level) retain() bool { return l.refs.Retain() }

func (l *level) release() error {
	if l == nil || !l.refs.Release() {
		return nil
	}
	err := l.t.Release()
	if l.f != nil {
		err = errors.Join(err, l.f.mapping.Close())
	}
	return err
}

func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
