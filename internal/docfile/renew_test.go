package docfile

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// A folder in which many files were made is replaced by a new one, when nothing is in it.
func TestRenew(t *testing.T) {
	b := newBed(t, func(o *Options) { o.Renew = 3 })
	dir := filepath.Join(b.l.Root, tempFolder, "tok", "0")
	stat := func() os.FileInfo {
		t.Helper()
		f, err := os.Open(dir) // and left open: else a new one might have the same inode
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	n := 0
	put := func() os.FileInfo {
		t.Helper()
		n++
		b.put(b.change(fmt.Sprint("m", n), 0, 1))
		return stat()
	}
	first := put()
	for range 2 {
		if !os.SameFile(first, put()) {
			t.Fatal("replaced before so many files were made")
		}
	}
	second := put()
	if os.SameFile(first, second) {
		t.Fatal("not replaced")
	}
	// What is left in it, of whoever, keeps it.
	if err := os.WriteFile(filepath.Join(dir, "left"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		if !os.SameFile(second, put()) {
			t.Fatal("replaced with a file in it")
		}
	}
	if err := os.Remove(filepath.Join(dir, "left")); err != nil {
		t.Fatal(err)
	}
	// And so does the pool.
	b.put(b.change("m1", 1, 2))
	for range 8 {
		b.put(b.change("m1", 2, 3))
		b.put(b.change("m1", 3, 2))
		if !os.SameFile(second, stat()) {
			t.Fatal("replaced with a pool")
		}
	}
	for i := range n {
		if i > 0 {
			b.want(fmt.Sprint("m", i+1), 1)
		}
	}
	b.want("m1", 2)
	if err := b.fl.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("Close left the folder")
	}
}
