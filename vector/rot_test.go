package vector

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/vfs"
)

// TestRot flips every bit of the four files of a small store, in turn: either it is reported as damage,
// or it makes no difference; a search never returns anything else than before. The same for a truncated
// file, and for a file of another store.
func TestRot(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	d, fsys := newDisk(t)
	r := rand.New(rand.NewPCG(3, 3))
	m := newModel(3, IP)
	for i := range 5 {
		m.put(Kind(i%2), fmt.Sprint("id", i), randomVector(r, m.dim))
	}
	if _, err := WriteBase(Empty(), m.target(fsys), m.take(t)); err != nil {
		t.Fatal(err)
	}
	m.put(Memories, "id0", randomVector(r, m.dim))
	m.del(Assemblies, "id1")
	v := mustView(t, fsys, nil)
	if _, err := WriteDelta(v.Set(), m.target(fsys), m.take(t)); err != nil {
		t.Fatal(err)
	}
	q := randomVector(r, m.dim)
	answer := func(fsys vfs.FS) (text string, found error, err error) {
		s, err := Load(fsys, testDir, testStore, nil)
		if err != nil {
			return "", nil, err
		}
		defer s.Release()
		v, err := NewView(s, IP, 0)
		if err != nil {
			return "", nil, err
		}
		for err := range Verify(s) {
			found = err
			break
		}
		for kind := range kinds {
			hits, err := v.Search(context.Background(), Query{Kind: kind, Vector: q, Limit: 10})
			if err != nil {
				return "", found, err
			}
			text += fmt.Sprint(hits)
		}
		return text, found, nil
	}
	want, found, err := answer(fsys)
	if err != nil || found != nil {
		t.Fatal(err, found)
	}
	silent := map[string]int{}
	for _, name := range []string{baseFAISS, BaseMapping, deltaFAISS, DeltaMapping} {
		path := filepath.Join(testDir, name)
		b, err := vfs.ReadFile(fsys, path, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		for bit := range 8*len(b) + len(b) {
			c := append([]byte(nil), b...)
			what := ""
			if bit < 8*len(b) {
				c[bit/8] ^= 1 << (bit % 8)
				what = fmt.Sprintf("%s, bit %d of byte %d", name, bit%8, bit/8)
			} else {
				c = c[:bit-8*len(b)]
				what = fmt.Sprintf("%s, cut to %d bytes", name, len(c))
			}
			now := d.Copy().Process("reader")
			info, err := now.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			f, err := now.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			if err = f.Truncate(int64(len(c))); err == nil {
				_, err = f.WriteAt(c, 0)
			}
			if err == nil {
				err = f.SetMtime(info.Mtime) // rot does not touch it
			}
			if err != nil {
				t.Fatal(err)
			}
			_ = f.Close()
			got, found, err := answer(now)
			switch {
			case err != nil:
				if !errors.Is(err, errs.ErrCorrupt) && !errors.Is(err, errs.ErrNewerFormat) && !errors.Is(err, ErrForeign) {
					t.Fatalf("%s: an error of another kind: %v", what, err)
				}
			case got != want:
				t.Fatalf("%s: found %s, not %s", what, got, want)
			case found == nil:
				t.Fatalf("%s: neither search nor Verify saw it", what)
			default:
				silent[name]++
			}
		}
	}
	t.Logf("rot that a search did not meet, and Verify did: %v", silent)
}

// TestCopiedStore: another mtime is not damage if the file belongs to the mapping.
func TestCopiedStore(t *testing.T) {
	t.Parallel()
	_, fsys := newDisk(t)
	r := rand.New(rand.NewPCG(3, 3))
	m := newModel(300, IP)
	for i := range 2000 { // more than one block
		m.put(Memories, fmt.Sprint("id", i), randomVector(r, m.dim))
	}
	if _, err := WriteBase(Empty(), m.target(fsys), m.take(t)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(testDir, baseFAISS)
	f, err := fsys.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err == nil {
		err = f.SetMtime(info.Mtime.Add(1000000))
	}
	if err != nil {
		t.Fatal(err)
	}
	v := mustView(t, fsys, nil)
	if err := m.check(v, r); err != nil {
		t.Fatal(err)
	}
	_ = v.Release()
	// An id that differs from the mapping: another file.
	if _, err := f.WriteAt([]byte{0xff}, info.Size-1); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(fsys, testDir, testStore, nil); !errors.Is(err, errs.ErrCorrupt) || !errors.Is(err, errPair) {
		t.Fatal(err)
	}
	if _, err := Load(fsys, testDir, "another", nil); !errors.Is(err, ErrForeign) {
		t.Fatal(err)
	}
}

// TestCutWhileMapped: a file that another program truncates leads to an error, not a signal.
func TestCutWhileMapped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fsys := vfs.OS()
	m := newModel(256, IP)
	r := rand.New(rand.NewPCG(5, 5))
	for i := range 3000 {
		m.put(Memories, fmt.Sprint("id", i), randomVector(r, m.dim))
	}
	to := m.target(fsys)
	to.Dir, to.Temp = dir, filepath.Join(dir, "index.x")
	if _, err := WriteBase(Empty(), to, m.take(t)); err != nil {
		t.Fatal(err)
	}
	s, err := Load(fsys, dir, testStore, nil)
	if err != nil {
		t.Fatal(err)
	}
	v, err := NewView(s, IP, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Release()
	q := Query{Vector: randomVector(r, m.dim), Limit: 3, Workers: 2}
	for range 2 { // with unverified blocks, and with verified ones
		if err := os.Truncate(filepath.Join(dir, filepath.FromSlash(baseFAISS)), 5<<12); err != nil {
			t.Skip("the system does not cut what is mapped:", err, "(nothing to test)")
		}
		if _, err := v.Search(context.Background(), q); !errors.Is(err, errs.ErrCorrupt) {
			t.Fatal(err)
		}
	}
}
