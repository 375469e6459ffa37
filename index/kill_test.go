package index

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/vfs"
)

// failFS allows a number of steps that change something, and none after them.
type failFS struct {
	vfs.FS
	left *int
}

type failFile struct {
	vfs.File
	left *int
}

var errKilled = errors.New("killed")

func (f failFS) step() error {
	if *f.left == 0 {
		return errKilled
	}
	*f.left--
	return nil
}

func (f failFS) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	if err := f.step(); err != nil {
		return nil, err
	}
	file, err := f.FS.OpenFile(name, flag, perm)
	return failFile{file, f.left}, err
}
func (f failFS) Remove(name string) error {
	if err := f.step(); err != nil {
		return err
	}
	return f.FS.Remove(name)
}
func (f failFS) Rename(a, b string) error {
	if err := f.step(); err != nil {
		return err
	}
	return f.FS.Rename(a, b)
}
func (f failFS) Link(a, b string) error {
	if err := f.step(); err != nil {
		return err
	}
	return f.FS.Link(a, b)
}
func (f failFS) SyncDir(name string) error {
	if err := f.step(); err != nil {
		return err
	}
	return f.FS.SyncDir(name)
}
func (f failFile) WriteAt(b []byte, off int64) (int, error) {
	if err := (failFS{left: f.left}).step(); err != nil {
		n, _ := f.File.WriteAt(b[:len(b)/2], off)
		return n, err
	}
	return f.File.WriteAt(b, off)
}
func (f failFile) Sync() error {
	if err := (failFS{left: f.left}).step(); err != nil {
		return err
	}
	return f.File.Sync()
}

// TestKill stops a delta, then a merge, before each of their steps: either the old or the new set must
// load completely, and the rewrite must succeed afterwards.
func TestKill(t *testing.T) {
	for _, merge := range []bool{false, true} {
		done := false
		for steps := 0; !done; steps++ {
			dir := t.TempDir()
			m := newModel()
			for i := range 20 {
				m.put(i%2, fmt.Sprint("id", i), "s", t0, []string{"id0", "id2", "gone"}[:i%2*3]...)
			}
			flush := func(fsys vfs.FS, s *Set, write func(*Set, Target, Changes) (Written, error)) error {
				_, err := write(s, target(fsys, dir, m.lsn), m.take())
				return err
			}
			open := func(spilled uint64) *Set {
				s, err := Load(vfs.OS(), dir, Want{Store: store, Spilled: spilled}, nil)
				if err != nil {
					t.Fatalf("merge %v, killed after %d steps: %v", merge, steps, err)
				}
				return s
			}
			if err := flush(vfs.OS(), Empty(8), WriteBase); err != nil {
				t.Fatal(err)
			}
			m.del(Memories, "id0")
			s := open(m.lsn - 8)
			if err := flush(vfs.OS(), s, WriteDelta); err != nil {
				t.Fatal(err)
			}
			_ = s.Release()
			s = open(m.lsn)
			before := *m
			before.live = [2]map[string]Entry{maps.Clone(m.live[0]), maps.Clone(m.live[1])}
			m.put(Memories, "id0", "s2", t0)
			m.put(Memories, "id2", "s2", time.Time{})
			changes := slices.Clone(m.changes)
			write := WriteDelta
			if merge {
				write = WriteBase
			}
			left := steps
			err := flush(failFS{vfs.OS(), &left}, s, write)
			done = err == nil && left > 0
			if err != nil && !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
			_ = s.Release()
			s = open(before.lsn)
			if s.LSN() == m.lsn {
				m.check(t, s)
			} else {
				if done {
					t.Fatal("it says it succeeded")
				}
				before.check(t, s)
			}
			m.changes = changes
			if s.LSN() == m.lsn {
				write = WriteBase
			}
			if err := flush(vfs.OS(), s, write); err != nil {
				t.Fatal(err)
			}
			_ = s.Release()
			s = open(m.lsn)
			m.check(t, s)
			_ = s.Release()
		}
	}
}
