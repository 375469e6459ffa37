//go:build unix

package vfs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// After Hold every operation works in the held folder, whatever has its path now.
func TestHold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root := filepath.Join(dir, "store")
	if err := os.MkdirAll(filepath.Join(root, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	held, release, err := Hold(Only(OS(), "", root), root)
	if err != nil {
		t.Fatal(err)
	}
	lock, err := held.OpenLock(filepath.Join(root, "sub", "a.lock"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := held.OpenLock(filepath.Join(root, "sub", "b.lock"), 0o600)
	if err == nil {
		err = KeepOpen(kept)
	}
	if err != nil {
		t.Fatal(err)
	}
	was := root + ".was"
	if err := os.Rename(root, was); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(root, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := CreateNew(held, filepath.Join(root, "new"), 0o600)
	if err == nil {
		err = f.Close()
	}
	steps := map[string]error{
		"create": err,
		"mkdir":  held.Mkdir(filepath.Join(root, "sub", "deep"), 0o700),
		"rename": held.Rename(filepath.Join(root, "new"), filepath.Join(root, "sub", "renamed")),
		"sync":   errors.Join(held.SyncDir(root), held.SyncDir(filepath.Join(root, "sub"))),
		"lock":   errors.Join(lock.Lock(context.Background(), ModeExclusive), lock.Unlock()),
		"kept":   errors.Join(kept.Lock(context.Background(), ModeExclusive), kept.Unlock()),
		"shared": func() error {
			s, err := held.OpenShared(filepath.Join(root, "page"), true, 0o600)
			if err == nil {
				err = s.Close()
			}
			return err
		}(),
	}
	for what, err := range steps {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if names, err := os.ReadDir(filepath.Join(root, "sub")); err != nil || len(names) != 0 {
		t.Errorf("what has the path has changed: %v %v", names, err)
	}
	if names, err := ReadRoot(held, root); err != nil || len(names) != 2 {
		t.Errorf("ReadRoot: %v %v", names, err)
	}
	for _, name := range []string{"page", "sub/renamed", "sub/deep", "sub/a.lock"} {
		if _, err := os.Lstat(filepath.Join(was, name)); err != nil {
			t.Error(err)
		}
		if _, err := held.Stat(filepath.Join(root, name)); err != nil {
			t.Error(err)
		}
		if _, _, err := AtPath(held, filepath.Join(root, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("AtPath finds %s where the path leads: %v", name, err)
		}
	}
	release()
	release()
	if _, err := held.Stat(filepath.Join(root, "page")); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("after release: %v", err)
	}
	if _, err := held.OpenFile(filepath.Join(root, "page"), os.O_RDONLY, 0); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("after release: %v", err)
	}
}

// A lock on a folder excludes other handles, and needs no file.
func TestFolderLock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var locks [3]FolderLock
	for i := range locks {
		l, err := OpenFolderLock(Only(OS(), "", dir), dir)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		locks[i] = l
	}
	try := func(i int, mode Mode, want bool) {
		t.Helper()
		if ok, err := locks[i].TryLock(mode); ok != want || err != nil {
			t.Fatalf("lock %d: %t %v", i, ok, err)
		}
	}
	try(0, ModeShared, true)
	try(1, ModeShared, true)
	try(2, ModeExclusive, false)
	if err := errors.Join(locks[0].Unlock(), locks[1].Close()); err != nil {
		t.Fatal(err)
	}
	try(2, ModeExclusive, true)
	try(0, ModeShared, false)
	if names, err := os.ReadDir(dir); err != nil || len(names) != 0 {
		t.Fatal(names, err)
	}
}

// TestLocksCloseOnce: a second Close of a lock does not close the file that got its descriptor meanwhile.
func TestLocksCloseOnce(t *testing.T) {
	dir := t.TempDir()
	folder, err := OpenFolderLock(OS(), dir)
	must(t, err)
	file, err := OS().OpenLock(filepath.Join(dir, "a.lock"), 0o600)
	must(t, err)
	must(t, errors.Join(folder.Close(), file.Close()))
	var next [8]*os.File
	for i := range next {
		next[i], err = os.Open(dir)
		must(t, err)
		defer next[i].Close()
	}
	for _, lock := range []io.Closer{folder, file} {
		if err := lock.Close(); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("%T: %v", lock, err)
		}
	}
	for _, f := range next {
		if _, err := f.Stat(); err != nil {
			t.Error(err)
		}
	}
}
