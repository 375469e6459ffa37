//go:build linux || darwin

package vfs

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/varve-db/varve/errs"
)

// specials creates a file of each kind that is not regular in a folder. The keys name them as errors do.
func specials(t *testing.T, dir string) map[string]string {
	t.Helper()
	at := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.Mkdir(at("folder"), 0o700))
	must(t, unix.Mkfifo(at("fifo"), 0o600))
	must(t, os.Symlink("folder", at("link")))
	must(t, os.Symlink("/dev/zero", at("device-link")))
	must(t, os.Symlink("loop", at("loop")))
	must(t, os.Symlink("nothing", at("dangling")))
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: at("socket"), Net: "unix"})
	must(t, err)
	t.Cleanup(func() { l.Close() })
	list := map[string]string{
		"folder": "a folder", "fifo": "a FIFO", "link": "a symbolic link", "device-link": "a symbolic link",
		"loop": "a symbolic link", "dangling": "a symbolic link", "socket": "a socket",
	}
	if unix.Mknod(at("device"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 5))) == nil { // as root: /dev/zero
		list["device"] = "a device"
	}
	return list
}

// Nothing but a regular file is opened, by any function, and the error names the kind of the file.
func TestOpenRegularOnly(t *testing.T) {
	dir := t.TempDir()
	for name, kind := range specials(t, dir) {
		path := filepath.Join(dir, name)
		check := func(op string, err error) {
			t.Helper()
			var what *NotRegularError
			if !errors.As(err, &what) || what.Path != path || !errors.Is(err, ErrNotRegular) || !errors.Is(err, errs.ErrInvalid) {
				t.Errorf("%s %s: %v", op, name, err)
			} else if !strings.Contains(err.Error(), kind) {
				t.Errorf("%s %s: %q does not say %s", op, name, err, kind)
			}
			if errors.Is(err, errs.ErrCorrupt) || IsPermission(err) {
				t.Errorf("%s %s: %v is called damage or a matter of permissions", op, name, err)
			}
		}
		for _, flag := range []int{
			os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_RDWR | os.O_CREATE, os.O_RDWR | os.O_CREATE | os.O_TRUNC,
		} {
			f, err := OS().OpenFile(path, flag, 0o600)
			if err == nil {
				f.Close()
			}
			check("open", err)
		}
		if _, err := OS().OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); !errors.Is(err, fs.ErrExist) {
			t.Errorf("create %s: %v", name, err)
		}
		_, err := OS().OpenLock(path, 0o600)
		check("lock", err)
		for _, create := range []bool{true, false} {
			_, err = OS().OpenShared(path, create, 0o600)
			check("share", err)
		}
		_, err = ReadFile(OS(), path, 1<<20)
		check("read", err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "nothing")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("created through a dangling link")
	}
}

// ReadDir reads a folder, ReadRoot also through a link; neither waits or opens a device.
func TestReadDirFoldersOnly(t *testing.T) {
	dir := t.TempDir()
	list := specials(t, dir)
	write(t, filepath.Join(dir, "folder", "a"), "x")
	write(t, filepath.Join(dir, "file"), "x")
	list["file"] = "a regular file"
	for name, kind := range list {
		path := filepath.Join(dir, name)
		names, err := OS().ReadDir(path)
		if name == "folder" {
			if err != nil || len(names) != 1 {
				t.Error(name, names, err)
			}
			continue
		}
		var what *NotFolderError
		if !errors.As(err, &what) || what.Path != path || !errors.Is(err, ErrNotFolder) || !errors.Is(err, syscall.ENOTDIR) || !strings.Contains(err.Error(), kind) {
			t.Errorf("%s: %q, %v", name, names, err)
		}
		names, err = ReadRoot(OS(), path)
		if name == "link" != (err == nil && len(names) == 1) {
			t.Errorf("as a root, %s: %q, %v", name, names, err)
		}
	}
	if _, err := OS().ReadDir(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func BenchmarkOpen(b *testing.B) {
	name := filepath.Join(b.TempDir(), "a")
	if err := os.WriteFile(name, make([]byte, 1000), 0o600); err != nil {
		b.Fatal(err)
	}
	b.Run("OpenFile", func(b *testing.B) {
		for b.Loop() {
			f, err := OS().OpenFile(name, os.O_RDONLY, 0)
			if err != nil {
				b.Fatal(err)
			}
			f.Close()
		}
	})
	b.Run("Glance", func(b *testing.B) {
		buf := make([]byte, 2000)
		for b.Loop() {
			if _, _, err := OS().(Glancer).Glance(name, buf, 2000); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Stat", func(b *testing.B) {
		for b.Loop() {
			if _, err := OS().Stat(name); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// If a FIFO takes the name of a leased file while an open waits for the lease, the open does not wait
// for the FIFO.
func TestOpenLeasedThenFIFO(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a")
	leased := true
	open := func(name string, flag int, perm fs.FileMode) (int, error) {
		if leased {
			leased = false
			must(t, unix.Mkfifo(name, 0o600))
			return -1, unix.EWOULDBLOCK
		}
		if flag&unix.O_NONBLOCK == 0 {
			return -1, errors.New("opened in a way that waits for a FIFO's writer")
		}
		return openFD(name, flag, perm)
	}
	if f, err := openFileBy(&way{open, lstat}, nil, name, os.O_RDONLY, 0); !errors.Is(err, ErrNotRegular) {
		t.Errorf("opened %v, %v", f, err)
	}
}
