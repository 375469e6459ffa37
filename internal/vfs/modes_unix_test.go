//go:build linux || darwin

package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// What a process does in a folder, depending on its user and on the folder's mode and owner.
func TestManners(t *testing.T) {
	const shared = fs.ModeDir | fs.ModeSetgid
	for _, c := range []struct {
		folder     Info
		euid, egid int
		want       *manners
	}{
		{Info{Mode: fs.ModeDir | 0o700, UID: 7, GID: 7}, 7, 7, nil},
		{Info{Mode: fs.ModeDir | 0o775, UID: 7, GID: 8}, 7, 7, nil}, // no setgid
		{Info{Mode: shared | 0o750, UID: 7, GID: 8}, 7, 7, nil},     // the group may not write
		{Info{Mode: fs.ModeDir | 0o777, UID: 0, GID: 0}, 0, 0, nil},
		{Info{Mode: shared | 0o770, UID: 7, GID: 8}, 9, 9, &manners{-1, -1, 0o060, sharedFolder}},
		{Info{Mode: fs.ModeDir | 0o700, UID: 7, GID: 8}, 0, 0, &manners{7, 8, 0, 0}},
		{Info{Mode: fs.ModeDir | 0o700, UID: 0, GID: 8}, 0, 0, &manners{0, 8, 0, 0}},
		{Info{Mode: shared | 0o770, UID: 7, GID: 8}, 0, 0, &manners{7, 8, 0o060, sharedFolder}},
	} {
		got := mannersOf(&c.folder, c.euid, c.egid)
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("user %d in %s of %d:%d: %+v, want %+v", c.euid, c.folder.Mode, c.folder.UID, c.folder.GID, got, c.want)
		}
	}
}

// Everything created in a shared folder belongs to its group, whatever the umask, from the moment that
// it has its name.
func TestMadeInShared(t *testing.T) {
	dir := t.TempDir()
	fsys := Below(OS(), dir)
	if err := Share(fsys, dir); err != nil {
		t.Fatal(err)
	}
	if !IsShared(fsys, dir) {
		t.Fatal("the folder is not shared")
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := fsys.Mkdir(at("folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := fsys.Mkdir(at("folder"), 0o700); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a folder that is there: %v", err)
	}
	for name, flag := range map[string]int{"new": os.O_RDWR | os.O_CREATE | os.O_EXCL, "any": os.O_RDWR | os.O_CREATE, "folder/in": os.O_RDWR | os.O_CREATE} {
		for range 2 {
			f, err := fsys.OpenFile(at(name), flag, 0o600)
			if flag&os.O_EXCL != 0 && errors.Is(err, fs.ErrExist) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteAt([]byte("x"), 0); err != nil {
				t.Error(err)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	lock, err := fsys.OpenLock(at("lock"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	page, err := fsys.OpenShared(at("page"), true, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer page.Close()
	var root unix.Stat_t
	if err := unix.Stat(dir, &root); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"new", "any", "lock", "page", "folder", "folder/in"} {
		info, err := fsys.Stat(at(name))
		want := fs.FileMode(0o660)
		if name == "folder" {
			want = fs.ModeDir | fs.ModeSetgid | 0o770
		}
		if err != nil || info.Mode != want || info.GID != root.Gid {
			t.Errorf("%s: %s, group %d, %v", name, info.Mode, info.GID, err)
		}
	}
	if names, err := fsys.ReadDir(dir); err != nil || len(names) != 5 {
		t.Errorf("left behind: %v, %v", names, err)
	}
}
