package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func linkNewTest(old, new string) error { return linkNew(old, new) }

// FAILURES 63: a displaced file is reused while another process holds it open.
func TestLease(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a")
	write(t, name, "x")
	f := open(t, name, os.O_RDWR)
	other := open(t, name, os.O_RDONLY)
	ok, err := f.Lease()
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("no leases here")
	}
	must(t, err)
	if ok {
		t.Fatal("a lease on a file that somebody reads")
	}
	must(t, other.Close())
	m, err := func() (Mapping, error) {
		g := open(t, name, os.O_RDONLY)
		defer g.Close()
		return g.Map()
	}()
	must(t, err)
	if ok, err := f.Lease(); ok || err != nil {
		t.Fatal("a lease on a file that somebody has mapped", ok, err)
	}
	must(t, m.Close())
	if ok, err := f.Lease(); !ok || err != nil {
		t.Fatal("no lease", ok, err)
	}
	opened := make(chan error)
	go func() {
		g, err := OS().OpenFile(name, os.O_RDONLY, 0)
		if err == nil {
			err = g.Close()
		}
		opened <- err
	}()
	select {
	case err := <-opened:
		t.Fatal("opened under a lease", err)
	case <-time.After(20 * time.Millisecond):
	}
	must(t, f.Unlease())
	must(t, <-opened)
	must(t, f.Unlease())
	// A file that is opened only for reading can be leased too.
	must(t, f.Close())
	r := open(t, name, os.O_RDONLY)
	if ok, err := r.Lease(); !ok || err != nil {
		t.Fatal(ok, err)
	}
}

func TestOpenDoesNotBlockOnFIFO(t *testing.T) {
	name := filepath.Join(t.TempDir(), "fifo")
	must(t, unix.Mkfifo(name, 0o600))
	if _, err := OS().OpenFile(name, os.O_RDONLY, 0); !errors.Is(err, ErrNotRegular) {
		t.Fatal(err)
	}
	if _, err := ReadFile(OS(), name, 10); err == nil {
		t.Fatal("read a FIFO")
	}
}

func TestKernelAtLeast(t *testing.T) {
	for release, want := range map[string]bool{
		"5.8.0": true, "5.10.0-21-amd64": true, "6.18.44-fc-v657": true, "10.0": true,
		"5.7.19": false, "4.19.0": false, "": false, "x": false, "5": false,
	} {
		if kernelAtLeast(release, 5, 8) != want {
			t.Errorf("%q: not %v", release, want)
		}
	}
}

// RenameNew moves a folder also where the file system has no flags of renameat2, and replaces nothing.
func TestRenameFolderWithoutFlags(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	must(t, os.Mkdir(from, 0o700))
	write(t, filepath.Join(from, "x"), "x")
	must(t, os.Mkdir(to, 0o700))
	if err := linkNew(from, to); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over a folder: %v", err)
	}
	must(t, os.Remove(to))
	write(t, to, "a file")
	if err := linkNew(from, to); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over a file: %v", err)
	}
	must(t, os.Remove(to))
	must(t, linkNew(from, to))
	if read(t, filepath.Join(to, "x")) != "x" {
		t.Error("the content did not come along")
	}
}
