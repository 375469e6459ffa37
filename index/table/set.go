package table

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/varve-db/varve/internal/refcount"
	"github.com/varve-db/varve/internal/vfs"
)

// Errors of Load other than damage.
var (
	// ErrForeign means that a table file belongs to another store.
	ErrForeign = errors.New("belongs to another store")
	// ErrBehind means that the table files do not cover all that was already removed from the log.
	ErrBehind = errors.New("the files must cover the log at least up to the end of the part that was removed from " +
		"the log")

	errReleased = errors.New("the set of index files was released by its last user")
)

// Set is a base file with an optional delta file over it. A Set never changes. Get and Range may be called
// concurrently by callers that hold a reference.
type Set struct {
	sch         *Schema
	base, delta *Table   // open files; either may be nil, and there is a delta only with a base
	passed      vfs.Info // file information of a delta that is merged into the base but not removed yet
	lsn         uint64
	refs        refcount.Count
}

// Want describes what Load requires of the table files.
type Want struct {
	Store   string // UUID of the store
	Spilled uint64 // position up to which the log is released: base and delta must cover everything below it
	Start   uint64 // position where the log begins; files need not exist if Spilled is not above it
	// Damaged is called when the offsets of a table are found to be damaged, once for each file; the table is searched
	// from then on. It may be nil, and may be called by any goroutine that looks up a key.
	Damaged func(path string, err error)
}

// loadTries is the maximum number of attempts of Load. Load tries again if the files do not cover everything below
// want.Spilled. A flush renames its new files into place before it advances the position up to which the log is
// released. So one more attempt for each flush that ends during Load is enough.
const loadTries = 8

// Load opens the base and delta in a folder and maps them into memory. It opens the delta first: a merge puts the new
// base in place before it removes the delta, so a missing delta means that the base is the new one. If a file is
// incomplete, belongs to another store or is too old, Load returns an error that names the file; it never treats such
// a file as an empty table. prev may be nil; tables that prev has open and that have not changed are shared with the
// new set. The caller receives one reference, which it must release.
func Load(fsys vfs.FS, dir string, sch *Schema, want Want, prev *Set) (*Set, error) {
	var err error
	for range loadTries {
		var s *Set
		if s, err = loadOnce(fsys, dir, sch, want, prev); err == nil {
			return s, nil
		}
		if !errors.Is(err, ErrBehind) {
			return nil, err
		}
	}
	return nil, err
}

func loadOnce(fsys vfs.FS, dir string, sch *Schema, want Want, prev *Set) (*Set, error) {
	var had [2]*Table
	if prev != nil {
		had = [2]*Table{prev.base, prev.delta}
	}
	delta, err := openShared(fsys, dir, sch.Delta(), sch, &want, had[1])
	if err != nil {
		return nil, err
	}
	base, err := openShared(fsys, dir, sch.Base(), sch, &want, had[0])
	if err != nil {
		release(delta)
		return nil, err
	}
	if base == nil {
		release(delta)
		if delta == nil && want.Spilled <= want.Start {
			return Empty(sch, want.Spilled), nil
		}
		return nil, fmt.Errorf("%s is missing: %w, position %d", sch.Base(), ErrBehind, want.Spilled)
	}
	var passed vfs.Info
	if delta != nil && (delta.meta.From > base.meta.LSN || delta.meta.LSN <= base.meta.LSN) {
		passed = delta.file
		release(delta)
		delta = nil
	}
	s := newSet(sch, base, delta)
	s.passed = passed
	if s.lsn < want.Spilled {
		err := fmt.Errorf("%s up to %d: %w, position %d", sch.Base(), s.lsn, ErrBehind, want.Spilled)
		_ = s.Release()
		return nil, err
	}
	return s, nil
}

// openShared opens a table. prev is the table that is open already, or nil. If the file still has the contents of
// prev, openShared takes another reference to prev and returns prev. If the file does not exist, openShared
// returns nil without an error.
func openShared(fsys vfs.FS, dir, name string, sch *Schema, want *Want, prev *Table) (*Table, error) {
	if prev != nil && prev.matchesFile(fsys, dir) && prev.Retain() {
		prev.openOffsets(fsys, dir, want.Damaged)
		return prev, nil
	}
	t, err := Open(fsys, dir, name, sch)
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if store := want.Store; t.meta.Store != store {
		got := t.meta.Store
		release(t)
		return nil, fmt.Errorf("%s %w: the file belongs to store %s, but this is store %s",
			name, ErrForeign, got, store)
	}
	t.openOffsets(fsys, dir, want.Damaged)
	return t, nil
}

// matchesFile reports whether the file that now has t's name is the file that t has mapped, and still has the same
// last line. The last line has the hash of the metadata, and the metadata have the hashes of everything else. A
// file that was rebuilt with the same contents, because the mapped file is damaged, has the same last line but is
// another file.
func (t *Table) matchesFile(fsys vfs.FS, dir string) bool {
	f, err := fsys.OpenFile(filepath.Join(dir, t.name), os.O_RDONLY, 0)
	if err != nil {
		return false
	}
	var last [endWidth]byte
	info, err := f.Stat()
	if err == nil && t.maps(info) {
		_, err = f.ReadAt(last[:], info.Size-int64(endWidth))
	}
	cerr := f.Close()
	return err == nil && cerr == nil && last == t.end
}

// maps reports whether info describes the file that t has mapped, and this file has not changed since.
func (t *Table) maps(info vfs.Info) bool {
	return sameFile(info, t.file) && info.Size == int64(len(t.data))
}

// sameFile reports whether a and b describe the same file, with no write in between.
func sameFile(a, b vfs.Info) bool { return a.Ino == b.Ino && a.Dev == b.Dev && a.Mtime.Equal(b.Mtime) }

// Stands reports whether the files that are now in the folder are those of the set. An index that was rebuilt
// because of damage may cover the same range, but has other files.
func (s *Set) Stands(fsys vfs.FS, dir string) bool {
	info, err := fsys.Stat(filepath.Join(dir, s.sch.Base()))
	if s.base == nil {
		return err != nil
	}
	if err != nil || !s.base.maps(info) {
		return false
	}
	info, err = fsys.Stat(filepath.Join(dir, s.sch.Delta()))
	if s.delta == nil {
		return err != nil || sameFile(info, s.passed)
	}
	return err == nil && s.delta.maps(info)
}

// Empty returns a set without files and entries. Its LSN is lsn.
func Empty(sch *Schema, lsn uint64) *Set {
	s := &Set{sch: sch, lsn: lsn}
	s.refs.Start()
	return s
}

// Of returns a set that consists of one table. It takes over the caller's reference.
func Of(t *Table) *Set { return newSet(t.sch, t, nil) }

func newSet(sch *Schema, base, delta *Table) *Set {
	s := &Set{sch: sch, base: base, delta: delta, lsn: base.meta.LSN}
	if delta != nil {
		s.lsn = delta.meta.LSN
	}
	s.refs.Start()
	return s
}

func release(t *Table) {
	if t != nil {
		_ = t.Release()
	}
}

// LSN returns the position below which the set has all changes of the log.
func (s *Set) LSN() uint64 { return s.lsn }

// Base returns the base table, or nil if the set has no base. The table may be used as long as the caller holds a
// reference to the set.
func (s *Set) Base() *Table { return s.base }

// Delta returns the delta table, or nil if the set has no delta. The table may be used as long as the caller holds a
// reference to the set.
func (s *Set) Delta() *Table { return s.delta }

// Count returns the number of existing keys in a section.
func (s *Set) Count(sec int) int64 {
	switch {
	case s.delta != nil:
		return s.delta.Live(sec)
	case s.base != nil:
		return s.base.Live(sec)
	}
	return 0
}

// Retain takes another reference. It returns false if the last reference was released.
func (s *Set) Retain() bool { return s.refs.Retain() }

// Release releases a reference; the last one unmaps the files.
func (s *Set) Release() error {
	if !s.refs.Release() {
		return nil
	}
	var err error
	for _, t := range []*Table{s.base, s.delta} {
		if t != nil {
			err = errors.Join(err, t.Release())
		}
	}
	return err
}

// Get appends the value of a key to dst; ok is false if the key does not exist.
func (s *Set) Get(dst []byte, sec int, key string) (_ []byte, ok bool, err error) {
	enc, err := EncodeKey(key)
	if err != nil {
		return dst, false, err
	}
	n := len(dst)
	if s.delta != nil {
		if dst, ok, err = s.delta.get(dst, sec, enc); err != nil {
			return dst[:n], false, err
		}
		if ok {
			if s.sch.Sections[sec].Dead(dst[n:]) {
				return dst[:n], false, nil
			}
			return dst, true, nil
		}
	}
	if s.base == nil {
		return dst, false, nil
	}
	return s.base.get(dst, sec, enc)
}

// Current holds the set that readers use now.
type Current struct{ p atomic.Pointer[Set] }

// Acquire returns the newest set with a reference for the caller; nil before the first Swap.
func (c *Current) Acquire() *Set {
	for {
		s := c.p.Load()
		if s == nil || s.Retain() {
			return s
		}
	}
}

// Swap makes s the current set and releases the previous one. It takes over the caller's reference to s.
func (c *Current) Swap(s *Set) error {
	if old := c.p.Swap(s); old != nil {
		return old.Release()
	}
	return nil
}
