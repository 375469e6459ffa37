package vfs

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/varve-db/varve/errs"
)

func write(t *testing.T, name, content string) {
	t.Helper()
	must(t, os.WriteFile(name, []byte(content), 0o600))
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := ReadFile(OS(), name, 1<<20)
	must(t, err)
	return string(b)
}

func open(t *testing.T, name string, flag int) File {
	t.Helper()
	f, err := OS().OpenFile(name, flag, 0o600)
	must(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

func TestFileRoundTrip(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a")
	f := open(t, name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if _, err := f.WriteAt([]byte("hello"), 3); err != nil {
		t.Fatal(err)
	}
	must(t, f.Datasync())
	must(t, f.Sync())
	must(t, f.Truncate(6))
	when := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	must(t, f.SetMtime(when))
	must(t, OS().SyncDir(dir))
	for _, get := range []func() (Info, error){f.Stat, func() (Info, error) { return OS().Stat(name) }} {
		st, err := get()
		must(t, err)
		if st.Size != 6 || !st.Mtime.Equal(when) || st.Nlink != 1 || st.Ino == 0 || !st.Mode.IsRegular() {
			t.Fatalf("%+v", st)
		}
	}
	if got := read(t, name); got != "\x00\x00\x00hel" {
		t.Fatalf("%q", got)
	}
	m, err := f.Map()
	must(t, err)
	if string(m.Bytes()) != "\x00\x00\x00hel" {
		t.Fatalf("%q", m.Bytes())
	}
	must(t, m.Close())
	names, err := OS().ReadDir(dir)
	must(t, err)
	if !slices.Equal(names, []string{"a"}) {
		t.Fatal(names)
	}
	if _, err := OS().OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600); !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
}

func TestNames(t *testing.T) {
	dir := t.TempDir()
	a, b, c := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "c")
	write(t, a, "A")
	write(t, b, "B")
	if err := OS().RenameNew(a, b); !errors.Is(err, fs.ErrExist) {
		t.Fatalf("RenameNew over a file: %v", err)
	}
	must(t, OS().RenameNew(b, c))
	err := OS().Exchange(a, c)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("no exchange here")
	}
	must(t, err)
	if read(t, a) != "B" || read(t, c) != "A" {
		t.Fatal("not exchanged")
	}
	if err := OS().Exchange(a, b); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("Exchange with nothing: %v", err)
	}
	must(t, OS().Link(a, b))
	st, err := OS().Stat(a)
	must(t, err)
	if st.Nlink != 2 {
		t.Fatalf("nlink %d", st.Nlink)
	}
	if err := linkNewTest(a, c); !errors.Is(err, fs.ErrExist) {
		t.Fatalf("the fallback of RenameNew over a file: %v", err)
	}
	must(t, OS().Rename(a, c))
	if read(t, c) != "B" {
		t.Fatal("not replaced")
	}
	must(t, OS().Remove(c))
	if _, err := OS().Stat(c); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
}

func TestOpenRefusesSymlink(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "target"), "x")
	link := filepath.Join(dir, "link")
	if err := os.Symlink("target", link); err != nil {
		t.Skip(err)
	}
	if f, err := OS().OpenFile(link, os.O_RDONLY, 0); err == nil {
		f.Close()
		t.Fatal("followed a symbolic link")
	}
	st, err := OS().Stat(link)
	must(t, err)
	if st.Mode&fs.ModeSymlink == 0 {
		t.Fatal(st.Mode)
	}
	if _, err := OS().OpenLock(link, 0o600); err == nil {
		t.Fatal("locked through a symbolic link")
	}
}

func TestReadFileLimits(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a")
	write(t, name, "12345")
	if _, err := ReadFile(OS(), name, 4); !errors.Is(err, errs.ErrTooLarge) {
		t.Fatal(err)
	}
	if _, err := ReadFile(OS(), dir, 4); !errors.Is(err, errs.ErrInvalid) {
		t.Fatal(err)
	}
	if b, err := ReadFile(OS(), name, 5); err != nil || string(b) != "12345" {
		t.Fatal(b, err)
	}
}

func TestWriteDurable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "x", "y")
	must(t, MkdirAll(OS(), dir, 0o700))
	must(t, MkdirAll(OS(), dir, 0o700))
	tmp, name := filepath.Join(dir, "tmp"), filepath.Join(dir, "name")
	write(t, tmp, "left by a crash, and longer")
	must(t, WriteDurable(OS(), tmp, name, []byte("one"), 0o600))
	must(t, WriteDurable(OS(), tmp, name, []byte("two"), 0o600))
	if read(t, name) != "two" {
		t.Fatal("not replaced")
	}
	if _, err := OS().Stat(tmp); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal("the temp file is still there")
	}
	if err := MkdirAll(OS(), filepath.Join(name, "z"), 0o700); err == nil {
		t.Fatal("made a folder in a file")
	}
}

func TestShared(t *testing.T) {
	name := filepath.Join(t.TempDir(), "shared")
	if _, err := OS().OpenShared(name, false, 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	write(t, name, "short")
	if _, err := OS().OpenShared(name, false, 0o600); err == nil {
		t.Fatal("mapped a short file")
	}
	a, err := OS().OpenShared(name, true, 0o600)
	must(t, err)
	b, err := OS().OpenShared(name, false, 0o600)
	must(t, err)
	if a.Load(0) != 0 {
		t.Fatal("not made anew")
	}
	a.Store(Words-1, 7)
	if b.Load(Words-1) != 7 || !b.CompareAndSwap(Words-1, 7, 8) || a.Load(Words-1) != 8 || a.CompareAndSwap(Words-1, 7, 9) {
		t.Fatal("not shared")
	}
	before, err := OS().Stat(name)
	must(t, err)
	must(t, a.Close())
	a, err = OS().OpenShared(name, true, 0o600)
	must(t, err)
	after, err := OS().Stat(name)
	must(t, err)
	if b.Load(Words-1) != 0 || before.Ino != after.Ino {
		t.Fatal("making it anew left the old page behind")
	}
	must(t, a.Close())
	must(t, b.Close())
}

// FAILURES 25: another program cuts a mapped file short.
func TestGuard(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a")
	must(t, os.WriteFile(name, bytes.Repeat([]byte{1}, 1<<16), 0o600))
	m, err := open(t, name, os.O_RDONLY).Map()
	must(t, err)
	defer m.Close()
	if runtime.GOOS != "windows" {
		must(t, os.Truncate(name, 1))
		err = Guard(func() error {
			if m.Bytes()[1<<15] == 1 {
				return nil
			}
			return nil
		})
		if !errors.Is(err, errs.ErrCorrupt) {
			t.Fatalf("a fault gave %v", err)
		}
	}
	if err := Guard(func() error { return fs.ErrInvalid }); err != fs.ErrInvalid {
		t.Fatal(err)
	}
	for what, f := range map[string]func() error{
		"panic": func() error { panic("mine") },
		"index": func() error { _ = m.Bytes()[len(m.Bytes())]; return nil },
		"nil":   func() error { var p *Info; p.Size++; return nil },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: swallowed", what)
				}
			}()
			Guard(f)
		}()
	}
}

func TestErrorKinds(t *testing.T) {
	wrapped := &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}
	if !IsDiskFull(wrapped) || IsPermission(wrapped) || !IsDiskFull(syscall.EDQUOT) {
		t.Fatal("disk full")
	}
	if !IsPermission(syscall.EROFS) || !IsPermission(fs.ErrPermission) || IsPermission(nil) || IsDiskFull(nil) {
		t.Fatal("permission")
	}
}

func TestHostAndVolume(t *testing.T) {
	h, again := OS().Host(), OS().Host()
	if h != again || h.Boot == [2]uint64{} || h.PID != os.Getpid() || h.Command == "" {
		t.Fatalf("%+v", h)
	}
	if other := Process(os.Getppid()); other.Boot != h.Boot || other.PID != os.Getppid() {
		t.Fatalf("%+v", other)
	}
	v, err := OS().Volume(t.TempDir())
	must(t, err)
	if v.Type == "" || v.Free <= 0 || v.Total < v.Free || v.ReadOnly {
		t.Fatalf("%+v", v)
	}
	if _, err := OS().Volume(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
}

func TestBarrier(t *testing.T) {
	dir := t.TempDir()
	b, err := OS().OpenBarrier(dir)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("no trusted syncfs here")
	}
	must(t, err)
	write(t, filepath.Join(dir, "a"), "x")
	must(t, b.Sync())
	must(t, b.Close())
}
