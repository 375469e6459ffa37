//go:build linux || darwin

package vfs

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
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

// No operation follows a link below the root.
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
	// A link itself can be inspected, and moved away.
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

// The root may be reached through links, be written in several ways, and have other roots beside it;
// paths outside are not checked.
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

// If the folder of a lock has become a link, the lock is not created at its target, and an existing file
// there is not locked.
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
	must(t, os.WriteFile(filepath.Join(outside, "lock"), nil, 0o600))
	if err := l.Lock(context.Background(), ModeExclusive); EnterError(err) == nil {
		t.Error("another's file is locked", err)
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

// Only refuses every path that is below none of its roots, however it is written, and no other.
func TestOnlyRefuses(t *testing.T) {
	root, outside, _ := linkedFolders(t)
	state := filepath.Join(filepath.Dir(root), "state", "keys")
	before := listing(t, outside)
	for name, fsys := range map[string]FS{"one": Only(OS(), state, root), "more": Below(Only(OS(), "", root), state)} {
		bad := []string{
			filepath.Join(outside, "f"), filepath.Join(outside, "new"), root + "/../outside/f", root + "/a/../../outside/f", root + "x/f",
			filepath.Join(filepath.Dir(root), "f"), "f", "../f", "/", root + "/a/..",
		}
		for _, path := range bad {
			ops := map[string]error{
				"remove": fsys.Remove(path), "rename": fsys.Rename(path, root+"/to"), "to": fsys.Rename(root+"/g", path),
				"renamenew": fsys.RenameNew(root+"/g", path), "exchange": fsys.Exchange(root+"/g", path), "link": fsys.Link(root+"/g", path),
				"link from": fsys.Link(path, root+"/to"), "write": WriteDurable(fsys, root+"/tmp", path, []byte("x"), 0o600),
			}
			_, ops["open"] = fsys.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
			_, ops["lock"] = fsys.OpenLock(path, 0o600)
			_, ops["shared"] = fsys.OpenShared(path, true, 0o600)
			_, _, ops["glance"] = fsys.(Glancer).Glance(path, nil, 10)
			if path != "/" { // a folder above the root can be inspected
				ops["mkdir"] = fsys.Mkdir(path, 0o700)
				_, ops["stat"] = fsys.Stat(path)
				_, ops["readdir"] = fsys.ReadDir(path)
				ops["syncdir"] = fsys.SyncDir(path)
			}
			for op, err := range ops {
				var e *OutsideError
				if !errors.Is(err, ErrOutside) || !errors.As(err, &e) || e.Path != path || len(e.Roots) != 2 {
					t.Errorf("%s: %s of %s: %v", name, op, path, err)
				}
			}
		}
		for _, dir := range []string{root, filepath.Dir(root), "/"} {
			if _, err := fsys.Stat(dir); err != nil {
				t.Error(err)
			}
			if err := fsys.SyncDir(dir); err != nil {
				t.Error(err)
			}
			if _, err := ReadRoot(fsys, dir); err != nil {
				t.Error(err)
			}
		}
		must(t, MkdirAll(fsys, state, 0o700))
		must(t, WriteDurable(fsys, state+"/k.new", state+"/k", []byte("x"), 0o600))
		must(t, fsys.Remove(state+"/k"))
		must(t, fsys.Rename(root+"/a/f", root+"/a..f"))
		must(t, fsys.Rename(root+"/a..f", root+"/a/f"))
	}
	if after := listing(t, outside); after != before {
		t.Errorf("%s\nbecame\n%s", before, after)
	}
	t.Chdir(filepath.Dir(root))
	relative := Only(OS(), "", "root")
	for _, path := range []string{"outside/f", "root/../outside/f", "../x", filepath.Join(outside, "f")} {
		if _, err := relative.OpenFile(path, os.O_RDONLY, 0); !errors.Is(err, ErrOutside) {
			t.Error(path, err)
		}
	}
	for _, path := range []string{"root", ".", filepath.Dir(root), "root/a"} {
		if _, err := relative.Stat(path); err != nil {
			t.Error(path, err)
		}
	}
}

// TestOnlySwapped: while a folder is exchanged with a link to a folder outside, again and again, no
// operation creates, removes, renames or reads anything there.
func TestOnlySwapped(t *testing.T) {
	for name, walked := range map[string]bool{"as it is": false, "through a link": true} {
		t.Run(name, func(t *testing.T) { swapped(t, walked) })
	}
}

func swapped(t *testing.T, linked bool) {
	dir := t.TempDir()
	root, outside := filepath.Join(dir, "root"), filepath.Join(dir, "outside")
	for _, d := range []string{filepath.Join(root, "m", "n"), filepath.Join(outside, "n")} {
		must(t, os.MkdirAll(d, 0o700))
	}
	for _, f := range []string{"f", "g", "n/f", "n/g"} {
		write(t, filepath.Join(outside, f), "secret")
	}
	link := filepath.Join(root, "link")
	must(t, os.Symlink(outside, link))
	if err := OS().Exchange(filepath.Join(root, "m"), link); errors.Is(err, errors.ErrUnsupported) {
		return // nothing can be swapped in one step
	}
	must(t, OS().Exchange(filepath.Join(root, "m"), link))
	before := listing(t, outside)
	at := root
	if linked {
		at = filepath.Join(dir, "way")
		must(t, os.Symlink(root, at))
	}
	stop, done := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for ; ; n++ {
			select {
			case <-stop:
				if n%2 == 1 {
					_ = OS().Exchange(filepath.Join(root, "m"), link)
				}
				done <- n
				return
			default:
				_ = OS().Exchange(filepath.Join(root, "m"), link)
			}
		}
	}()
	fsys := Only(OS(), "", at)
	const rounds = 1000
	through := 0
	for i := range rounds {
		for _, folder := range []string{"m", "m/n"} {
			in := func(name string) string { return filepath.Join(at, folder, name) }
			spare := filepath.Join(at, "spare")
			if f, err := fsys.OpenFile(in("new"), os.O_RDWR|os.O_CREATE, 0o600); err == nil {
				through++
				f.Close()
			}
			for _, name := range []string{"f", "new"} {
				if b, err := ReadFile(fsys, in(name), 100); err == nil && string(b) == "secret" {
					t.Fatalf("round %d: read %s", i, in(name))
				}
				if b, _, err := fsys.(Glancer).Glance(in(name), nil, 100); err == nil && string(b) == "secret" {
					t.Fatalf("round %d: glanced at %s", i, in(name))
				}
			}
			if names, err := fsys.ReadDir(filepath.Join(at, folder)); err == nil {
				for _, name := range names {
					if name == "g" {
						t.Fatalf("round %d: listed %s", i, folder)
					}
				}
			}
			_ = fsys.Mkdir(in("d"), 0o700)
			_ = fsys.Remove(in("g"))
			_ = fsys.Remove(in("d"))
			if fsys.Rename(in("f"), spare) == nil || fsys.RenameNew(in("f"), spare) == nil {
				t.Fatalf("round %d: took %s", i, in("f"))
			}
			_ = fsys.Link(in("g"), spare)
			_ = fsys.Rename(in("new"), in("newer"))
			_ = fsys.RenameNew(in("newer"), in("new"))
			_ = fsys.Exchange(in("new"), in("f"))
			if l, err := fsys.OpenLock(in("l"), 0o600); err == nil {
				if ok, err := l.TryLock(ModeExclusive); err == nil && ok {
					_ = l.Unlock()
				}
				_ = l.Close()
			}
			if p, err := fsys.OpenShared(in("p"), true, 0o600); err == nil {
				_ = p.Close()
			}
			_ = fsys.Remove(in("l"))
			_ = fsys.SyncDir(filepath.Join(at, folder))
			if _, err := os.Lstat(spare); err == nil {
				t.Fatalf("round %d: %s of outside is in the root", i, folder)
			}
		}
	}
	close(stop)
	n := <-done
	if after := listing(t, outside); after != before {
		t.Errorf("%s\nbecame\n%s", before, after)
	}
	if through == 0 {
		t.Errorf("of %d rounds none met the folder itself", rounds)
	}
	t.Logf("%d swaps, %d of %d calls met the folder", n, through, 2*rounds)
}

// TestWalk: where the system cannot refuse links itself, each folder is opened separately, following no
// link.
func TestWalk(t *testing.T) {
	root, _, links := linkedFolders(t)
	top, err := unix.Open(root, onlyFolder, 0)
	must(t, err)
	defer unix.Close(top)
	for _, link := range links {
		rel, err := filepath.Rel(root, link)
		must(t, err)
		for _, rest := range []string{"", "/f", "/b/f", "/.", "/b", "//f"} {
			fd, err := walk(top, rel+rest, unix.O_RDONLY|unix.O_NONBLOCK, 0)
			if err != unix.ELOOP && err != unix.ENOTDIR {
				t.Errorf("%s: %d, %v", rel+rest, fd, err)
			}
		}
	}
	for _, good := range []string{"f", "a/f", "a/b/f", "a//b/f", "a/./f", "a/b", "a"} {
		fd, err := walk(top, good, unix.O_RDONLY|unix.O_NONBLOCK, 0)
		if err != nil {
			t.Errorf("%s: %v", good, err)
			continue
		}
		var got, want unix.Stat_t
		must(t, errors.Join(unix.Fstat(fd, &got), unix.Lstat(filepath.Join(root, good), &want), unix.Close(fd)))
		if got.Ino != want.Ino {
			t.Errorf("%s is another file", good)
		}
	}
}
