//go:build linux || darwin

package vfs

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// linkedFolders is a root with folders, beside a folder outside; each of the links leads
// out of the root, or nowhere.
func linkedFolders(t *testing.T) (root, outside string, links []string) {
	t.Helper()
	dir := t.TempDir()
	root, outside = filepath.Join(dir, "root"), filepath.Join(dir, "outside")
	for _, d := range []string{root, filepath.Join(root, "a", "b"), filepath.Join(outside, "b")} {
		must(t, os.MkdirAll(d, 0o700))
	}
	for _, d := range []string{root, filepath.Join(root, "a"), filepath.Join(root, "a", "b"), outside, filepath.Join(outside, "b")} {
		write(t, filepath.Join(d, "f"), "x")
		write(t, filepath.Join(d, "g"), "y")
	}
	for link, to := range map[string]string{
		"out": outside, "a/out": outside, "a/b/out": outside, "none": outside + "-none", "loop": "loop", "back": root, "a/in": "b",
	} {
		must(t, os.Symlink(to, filepath.Join(root, filepath.FromSlash(link))))
		links = append(links, filepath.Join(root, filepath.FromSlash(link)))
	}
	return root, outside, links
}

// No operation goes through a link below the root.
func TestBelowRefuses(t *testing.T) {
	root, outside, links := linkedFolders(t)
	before := listing(t, outside)
	fsys := Below(OS(), root)
	plain := filepath.Join(root, "a", "f")
	for _, link := range links {
		for _, rest := range []string{"f", "new", "b/f"} {
			name := filepath.Join(link, rest)
			ops := map[string]error{
				"mkdir":     fsys.Mkdir(name, 0o700),
				"remove":    fsys.Remove(name),
				"rename":    fsys.Rename(plain, name),
				"from":      fsys.Rename(name, plain),
				"renamenew": fsys.RenameNew(plain, name),
				"exchange":  fsys.Exchange(plain, name),
				"link":      fsys.Link(plain, name),
				"link from": fsys.Link(name, filepath.Join(root, "a", "h")),
				"syncdir":   fsys.SyncDir(link),
			}
			for _, flag := range []int{os.O_RDONLY, os.O_RDWR | os.O_CREATE, os.O_RDWR | os.O_CREATE | os.O_EXCL} {
				f, err := fsys.OpenFile(name, flag, 0o600)
				if err == nil {
					f.Close()
				}
				ops["open"] = err
			}
			_, _, ops["glance"] = fsys.(Glancer).Glance(name, nil, 10)
			_, ops["lock"] = fsys.OpenLock(name, 0o600)
			_, ops["shared"] = fsys.OpenShared(name, true, 0o600)
			_, ops["readdir"] = fsys.ReadDir(link)
			_, ops["readdir below"] = fsys.ReadDir(filepath.Join(link, "b"))
			_, ops["read root"] = ReadRoot(fsys, link)
			ops["mkdirall"] = MkdirAll(fsys, filepath.Join(link, "c", "d"), 0o700)
			ops["mkdirall of it"] = MkdirAll(fsys, link, 0o700)
			ops["write"] = WriteDurable(fsys, filepath.Join(root, "tmp"), name, []byte("x"), 0o600)
			if rest == "b/f" {
				_, ops["stat"] = fsys.Stat(name)
			}
			for op, err := range ops {
				if e := EnterError(err); e == nil || e.Path != link || e.Mode&fs.ModeSymlink == 0 {
					t.Errorf("%s of %s: %v", op, name, err)
				}
			}
		}
	}
	if after := listing(t, outside); after != before {
		t.Errorf("%s\nbecame\n%s", before, after)
	}
	// A link itself can be looked at, and moved away.
	for i, link := range links {
		if st, err := fsys.Stat(link); err != nil || st.Mode&fs.ModeSymlink == 0 {
			t.Error(link, st.Mode, err)
		}
		if i%2 == 0 {
			must(t, fsys.Remove(link))
		} else {
			must(t, fsys.Rename(link, filepath.Join(root, "moved")))
		}
	}
}

func listing(t *testing.T, dir string) (s string) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil {
			var info fs.FileInfo
			if info, err = e.Info(); err == nil {
				s += path + " " + info.Mode().String() + " " + info.ModTime().String() + "\n"
			}
		}
		return err
	}))
	return s
}

// The root may be reached through links, be written in several ways, and have others
// beside it; what is outside is not looked at.
func TestBelowRoots(t *testing.T) {
	root, outside, _ := linkedFolders(t)
	dir := filepath.Dir(root)
	must(t, os.Symlink(root, filepath.Join(dir, "way")))
	must(t, os.Symlink(dir, filepath.Join(dir, "up")))
	t.Chdir(dir)
	for _, as := range []string{root, root + "/", filepath.Join(dir, "way"), filepath.Join(dir, "up", "way"), "root", "./root/", "way", "../" + filepath.Base(dir) + "/root"} {
		fsys := Below(Below(OS(), as), outside)
		for _, name := range []string{"f", "a/f", "a/b/f"} {
			if b, err := ReadFile(fsys, filepath.Join(as, name), 10); err != nil || string(b) != "x" {
				t.Error(as, name, err)
			}
		}
		if _, err := ReadFile(fsys, filepath.Join(as, "out", "f"), 10); EnterError(err) == nil {
			t.Error(as, err)
		}
		if names, err := fsys.ReadDir(filepath.Clean(as)); err != nil || len(names) < 3 {
			t.Error(as, names, err)
		}
		if b, err := ReadFile(fsys, filepath.Join(dir, "up", "outside", "f"), 10); err != nil || string(b) != "x" {
			t.Error(as, err)
		}
		must(t, WriteDurable(fsys, filepath.Join(as, "a", "t"), filepath.Join(as, "a", "n"), []byte("x"), 0o600))
		must(t, MkdirAll(fsys, filepath.Join(as, "a", "c", "d"), 0o700))
	}
	t.Chdir(root)
	fsys := Below(OS(), ".")
	if _, err := ReadFile(fsys, "out/f", 10); EnterError(err) == nil {
		t.Error(err)
	}
	for _, name := range []string{"a/f", "../outside/f", filepath.Join(dir, "up", "outside", "f")} {
		if b, err := ReadFile(fsys, name, 10); err != nil || string(b) != "x" {
			t.Error(name, err)
		}
	}
}

// A lock whose folder has become a link is not made where that leads.
func TestBelowLockAgain(t *testing.T) {
	root, outside, _ := linkedFolders(t)
	fsys := Below(OS(), root)
	l, err := fsys.OpenLock(filepath.Join(root, "a", "lock"), 0o600)
	must(t, err)
	defer l.Close()
	must(t, os.Rename(filepath.Join(root, "a"), filepath.Join(root, "was")))
	must(t, os.Symlink(outside, filepath.Join(root, "a")))
	if err := l.Lock(context.Background(), ModeExclusive); EnterError(err) == nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(outside, "lock")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("made outside", err)
	}
}

func BenchmarkBelow(b *testing.B) {
	root := b.TempDir()
	name := filepath.Join(root, "memories", "a")
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(name, make([]byte, 1000), 0o600); err != nil {
		b.Fatal(err)
	}
	for what, fsys := range map[string]FS{"plain": OS(), "below": Below(OS(), root)} {
		b.Run("glance/"+what, func(b *testing.B) {
			buf := make([]byte, 2000)
			for b.Loop() {
				if _, _, err := fsys.(Glancer).Glance(name, buf, 2000); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("open/"+what, func(b *testing.B) {
			for b.Loop() {
				f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
				if err != nil {
					b.Fatal(err)
				}
				f.Close()
			}
		})
		b.Run("exchange/"+what, func(b *testing.B) {
			other := filepath.Join(root, "memories", "b")
			if err := os.WriteFile(other, nil, 0o600); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if err := fsys.Exchange(name, other); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
