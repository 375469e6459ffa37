package table

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/vfs"
)

// TestOrdinals: a line's number leads to its key and back, in every section of files with one block, and
// with many.
func TestOrdinals(t *testing.T) {
	proofs.OneGoroutine(t)
	for _, n := range []int{0, 1, 3, 20000} {
		dir, fsys, sch := t.TempDir(), vfs.OS(), testSchema()
		want := make([][]string, len(sch.Sections))
		f, err := fsys.OpenFile(filepath.Join(dir, "t.json"), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		w := NewWriter(f, sch)
		r := rand.New(rand.NewPCG(uint64(n), 0))
		for sec := range sch.Sections {
			if err := w.Section(); err != nil {
				t.Fatal(err)
			}
			for i := range n {
				key := fmt.Sprintf("%08d%0*d", i, r.IntN(20), 0)
				want[sec] = append(want[sec], key)
				if err := w.Entry([]byte(key), []byte("1")); err != nil {
					t.Fatal(err)
				}
			}
		}
		if _, err := w.Finish(Meta{Store: store, LSN: 8}, nil); err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
		tab, err := Open(fsys, dir, "t.json", sch)
		if err != nil {
			t.Fatal(err)
		}
		for sec, keys := range want {
			walk := tab.Walk(sec)
			for i, key := range keys {
				if line, v, err := tab.Find(nil, sec, key); err != nil || line != int64(i) || string(v) != "1" {
					t.Fatal(n, sec, i, line, err)
				}
				if got, v, err := tab.At(sec, int64(i)); err != nil || got != key || string(v) != "1" {
					t.Fatal(n, sec, i, got, err)
				}
				if k, v, ok, err := walk.Next(); !ok || err != nil || string(k) != key || string(v) != "1" {
					t.Fatal(n, sec, i, string(k), ok, err)
				}
			}
			if _, _, ok, err := walk.Next(); ok || err != nil {
				t.Fatal(n, sec, ok, err)
			}
			if line, _, err := tab.Find(nil, sec, "absent"); err != nil || line != -1 {
				t.Fatal(line, err)
			}
			for _, line := range []int64{-1, int64(len(keys))} {
				if _, _, err := tab.At(sec, line); err == nil {
					t.Fatal("a line that is not there was found")
				}
			}
		}
		_ = tab.Release()
	}
}
