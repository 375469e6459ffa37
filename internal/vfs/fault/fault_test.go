package fault

import (
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/crash"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, fsys vfs.FS, name string) vfs.File {
	t.Helper()
	f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	must(t, err)
	return f
}

func TestNth(t *testing.T) {
	fsys := New(crash.New().Process("x"), Nth(2, 1, Is(wrap.Mkdir), syscall.EMFILE))
	must(t, fsys.Mkdir("/a", 0o700))
	if err := fsys.Mkdir("/b", 0o700); !errors.Is(err, syscall.EMFILE) {
		t.Fatal(err)
	}
	if _, err := fsys.Stat("/b"); err == nil {
		t.Fatal("done all the same")
	}
	must(t, fsys.Mkdir("/b", 0o700))
}

func TestShort(t *testing.T) {
	d := crash.New()
	fsys := New(d.Process("x"),
		Nth(1, 1, Is(wrap.Write), Short(3, syscall.ENOSPC)),
		Nth(2, 1, Is(wrap.Write), Short(4, nil)),
		Nth(1, 1, Is(wrap.Read), Short(2, nil)))
	f := open(t, fsys, "/a")
	if n, err := f.WriteAt([]byte("hello"), 0); n != 3 || !vfs.IsDiskFull(err) {
		t.Fatal(n, err)
	}
	if n, err := f.WriteAt([]byte("HELLO"), 0); n != 4 || err != io.ErrShortWrite {
		t.Fatal(n, err)
	}
	b := make([]byte, 4)
	if n, err := f.ReadAt(b, 0); n != 2 || err != io.ErrUnexpectedEOF {
		t.Fatal(n, err)
	}
	if n, err := f.ReadAt(b, 0); n != 4 || err != nil || string(b) != "HELL" {
		t.Fatal(n, err, b)
	}
}

func TestAfter(t *testing.T) {
	fsys := New(crash.New().Process("x"), Nth(1, 1, Is(wrap.Rename), After(syscall.EIO)))
	must(t, open(t, fsys, "/a").Close())
	if err := fsys.Rename("/a", "/b"); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	if _, err := fsys.Stat("/b"); err != nil {
		t.Fatal("not done:", err)
	}
}

// FAILURES 6: the sync fails, the next one succeeds, the data are lost.
func TestSyncFailsThenSucceeds(t *testing.T) {
	d := crash.New()
	fsys := New(d.Process("x"), Nth(1, 1, Is(wrap.Datasync), syscall.EIO))
	f := open(t, fsys, "/a")
	must(t, fsys.SyncDir("/"))
	_, err := f.WriteAt([]byte("hello"), 0)
	must(t, err)
	if err := f.Datasync(); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	must(t, f.Datasync())
	read := func() string {
		b, err := vfs.ReadFile(d.Crash(crash.LoseAll, nil).Process("x"), "/a", 100)
		must(t, err)
		return strings.TrimRight(string(b), "\x00")
	}
	if got := read(); got != "" {
		t.Fatalf("durable in spite of it: %q", got)
	}
	_, err = f.WriteAt([]byte("hello"), 0)
	must(t, err)
	must(t, f.Datasync())
	if got := read(); got != "hello" {
		t.Fatalf("%q", got)
	}
}

func TestRuleSeesTheOperation(t *testing.T) {
	var seen []string
	fsys := New(crash.New().Process("x"), func(op *Op) error {
		seen = append(seen, op.Kind.String()+" "+op.Site())
		return nil
	})
	must(t, open(t, fsys, "/a").Close())
	if len(seen) != 2 || !strings.HasPrefix(seen[0], "create fault/fault_test.go:") || !strings.HasPrefix(seen[1], "close fault/fault_test.go:") {
		t.Fatal(seen)
	}
}
