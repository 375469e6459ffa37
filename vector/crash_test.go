package vector

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/crash"
	"github.com/varve-db/varve/internal/vfs/fault"
)

var errKilled = errors.New("killed here")

// stopAfter lets so many operations pass.
func stopAfter(fsys vfs.FS, left *int) vfs.FS {
	return fault.New(fsys, func(op *fault.Op) error {
		if *left <= 0 {
			return errKilled
		}
		*left--
		return nil
	})
}

// TestPowerCut cuts the power before each operation of a delta and of a merge, in every way that the
// crash file system supports, and loads the files from another process at that moment. Either the old or
// the new set must load completely; after success only the new one. Then the next write succeeds,
// whatever was left.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	for _, merge := range []bool{false, true} {
		done := false
		for steps := 0; !done; steps += proofs.Every(1) {
			d, fsys := newDisk(t)
			r := rand.New(rand.NewPCG(uint64(steps), 7))
			m := newModel(5, IP)
			for i := range 12 {
				m.put(Kind(i%2), fmt.Sprint("id", i), randomVector(r, m.dim))
			}
			v := mustView(t, fsys, nil)
			for i, write := range []func(*Set, Target, Plan) (Written, error){WriteBase, WriteDelta} {
				m.lsn += 8
				if _, err := write(v.Set(), m.target(fsys), m.take(t)); err != nil {
					t.Fatal(err)
				}
				v = mustView(t, fsys, nil)
				if i == 0 {
					m.del(Memories, "id0")
					m.put(Memories, "id2", randomVector(r, m.dim))
				}
			}
			before := m.copy()
			// As many are deleted as added, so that the new file has the size of the old one.
			m.del(Assemblies, "id1")
			m.put(Assemblies, "id3", randomVector(r, m.dim))
			m.put(Memories, "id0", randomVector(r, m.dim))
			write := WriteDelta
			if merge {
				write = WriteBase
			}
			left := steps
			plan := m.take(t)
			_, err := write(v.Set(), m.target(stopAfter(fsys, &left)), plan)
			if err != nil && !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
			done = err == nil
			look := func(fsys vfs.FS, what string) {
				t.Helper()
				s, lerr := Load(fsys, testDir, testStore, nil)
				if lerr != nil {
					t.Fatalf("merge %v, %d operations, %s: %v", merge, steps, what, lerr)
				}
				v, lerr := NewView(s, IP, 0)
				if lerr != nil {
					t.Fatal(lerr)
				}
				is := before
				if v.Set().LSN() == m.lsn {
					is = m
				} else if err == nil {
					t.Fatalf("merge %v, %s: the old vectors after success", merge, what)
				}
				if cerr := is.check(v, r); cerr != nil {
					t.Fatalf("merge %v, %d operations, %s: %v", merge, steps, what, cerr)
				}
				for verr := range Verify(v.Set()) {
					t.Fatalf("merge %v, %d operations, %s: %v", merge, steps, what, verr)
				}
				// The next writer continues from it.
				n := is.copy()
				n.put(Memories, "later", randomVector(r, m.dim))
				if _, nerr := WriteBase(v.Set(), n.target(fsys), n.take(t)); nerr != nil {
					t.Fatalf("merge %v, %d operations, %s, the next write: %v", merge, steps, what, nerr)
				}
				w := mustView(t, fsys, v.Set())
				if nerr := n.check(w, r); nerr != nil {
					t.Fatalf("merge %v, %d operations, %s, after the next write: %v", merge, steps, what, nerr)
				}
				_ = w.Release()
				_ = v.Release()
			}
			for _, p := range crash.Patterns() {
				for seed := range uint64(3) {
					look(d.Crash(p, rand.New(rand.NewPCG(seed, 1))).Process("reader"), fmt.Sprintf("power cut %v, seed %d", p, seed))
				}
			}
			look(d.Copy().Process("reader"), "as it stands")
			_ = v.Release()
		}
	}
}

// TestReaderBetween opens the vectors from another process between any two operations of a reader and a
// writer: every interleaving of one write with one load in which the write happens at once, and all
// loads between the steps of a write (TestPowerCut, "as it stands").
func TestReaderBetween(t *testing.T) {
	t.Parallel()
	for _, merge := range []bool{false, true} {
		done := false
		for steps := 0; !done; steps++ {
			_, fsys := newDisk(t)
			r := rand.New(rand.NewPCG(uint64(steps), 9))
			m := newModel(4, L2)
			for i := range 6 {
				m.put(Kind(i%2), fmt.Sprint("id", i), randomVector(r, m.dim))
			}
			if _, err := WriteBase(Empty(), m.target(fsys), m.take(t)); err != nil {
				t.Fatal(err)
			}
			m.put(Memories, "id0", randomVector(r, m.dim))
			v := mustView(t, fsys, nil)
			if _, err := WriteDelta(v.Set(), m.target(fsys), m.take(t)); err != nil {
				t.Fatal(err)
			}
			v = mustView(t, fsys, nil)
			old := m.copy()
			m.put(Memories, "id0", randomVector(r, m.dim))
			n, wrote := 0, false
			reader := fault.New(fsys, func(*fault.Op) error {
				if n++; n == steps+1 {
					wrote = true
					write := WriteDelta
					if merge {
						write = WriteBase
					}
					if _, err := write(v.Set(), m.target(fsys), m.take(t)); err != nil {
						t.Fatal(err)
					}
				}
				return nil
			})
			w := mustView(t, reader, nil)
			is := old
			if w.Set().LSN() == m.lsn && wrote {
				is = m
			}
			if err := is.check(w, r); err != nil {
				t.Fatalf("merge %v, the write after operation %d of the reader: %v", merge, steps, err)
			}
			done = !wrote
			_, _ = w.Release(), v.Release()
		}
	}
}

// TestDiskFull: a write that fails leaves the old files, and no temp files.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	d, fsys := newDisk(t)
	r := rand.New(rand.NewPCG(1, 1))
	m := newModel(64, IP)
	for i := range 100 {
		m.put(Memories, fmt.Sprint("id", i), randomVector(r, m.dim))
	}
	if _, err := WriteBase(Empty(), m.target(fsys), m.take(t)); err != nil {
		t.Fatal(err)
	}
	old := m.copy()
	for i := range 200 {
		m.put(Memories, fmt.Sprint("new", i), randomVector(r, m.dim))
	}
	v := mustView(t, fsys, nil)
	d.SetCapacity(60 << 10)
	plan := m.take(t)
	if _, err := WriteBase(v.Set(), m.target(fsys), plan); err == nil {
		t.Fatal("it fitted")
	}
	if names, err := fsys.ReadDir(testDir + "/tmp"); err != nil || len(names) != 0 {
		t.Fatal("left in tmp:", names, err)
	}
	w := mustView(t, fsys, nil)
	if err := old.check(w, r); err != nil {
		t.Fatal(err)
	}
	d.SetCapacity(1 << 30)
	if _, err := WriteBase(w.Set(), m.target(fsys), plan); err != nil {
		t.Fatal(err)
	}
	w = mustView(t, fsys, nil)
	if err := m.check(w, r); err != nil {
		t.Fatal(err)
	}
}

// TestKilledTwice kills a writer at each operation, and the next one at each of its own: what the first
// left incomplete is still usable then.
func TestKilledTwice(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(4, 4))
	m := newModel(2, IP)
	d, fsys := newDisk(t)
	for i := range 3 {
		m.put(Memories, fmt.Sprint("id", i), randomVector(r, m.dim))
	}
	if _, err := WriteBase(Empty(), m.target(fsys), m.take(t)); err != nil {
		t.Fatal(err)
	}
	lsn := m.lsn
	for first, done := 0, false; !done; first++ {
		one := d.Copy()
		m := m.copy()
		m.put(Memories, "id1", randomVector(r, m.dim))
		v := mustView(t, one.Process("a"), nil)
		left := first
		_, err := WriteBase(v.Set(), m.target(stopAfter(one.Process("a"), &left)), m.take(t))
		done = err == nil
		_ = v.Release()
		for second, done := 0, false; !done; second++ {
			two := one.Copy()
			v := mustView(t, two.Process("b"), nil)
			n := m.copy()
			n.put(Memories, "id2", randomVector(r, m.dim))
			if v.Set().LSN() == lsn { // the first write's changes are due again
				n.changed[Memories]["id1"] = true
			}
			before := v.Set().LSN()
			left := second
			_, err := WriteBase(v.Set(), n.target(stopAfter(two.Process("b"), &left)), n.take(t))
			done = err == nil
			_ = v.Release()
			w := mustView(t, two.Process("c"), nil)
			if got := w.Set().LSN(); got != before && got != n.lsn {
				t.Fatal(first, second, got)
			}
			for err := range Verify(w.Set()) {
				t.Fatal(first, second, err)
			}
			_ = w.Release()
		}
	}
}

// TestSearchBesidePuts: a memory whose vector changes all the time is found by every search, since it
// has a vector at every moment.
func TestSearchBesidePuts(t *testing.T) {
	t.Parallel()
	_, fsys := newDisk(t)
	r := rand.New(rand.NewPCG(4, 4))
	m := newModel(16, IP)
	q := randomVector(r, m.dim)
	for i := range 3000 {
		v := randomVector(r, m.dim)
		if i%100 == 50 {
			v = q
		}
		m.put(Memories, fmt.Sprintf("id%04d", i), v)
	}
	if _, err := WriteBase(Empty(), m.target(fsys), m.take(t)); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		v := mustView(t, fsys, nil)
		done := make(chan error, 1)
		go func() {
			for i := 50; i < 3000; i += 100 {
				near := append([]float32(nil), q...)
				near[0] += float32(i) * 1e-6
				if err := v.Put(Memories, fmt.Sprintf("id%04d", i), int64(1<<30+i), near); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
		for busy := true; busy; {
			select {
			case err := <-done:
				if err != nil {
					t.Fatal(err)
				}
				busy = false
			default:
			}
			hits, err := v.Search(context.Background(), Query{Vector: q, Limit: 30, Workers: 2})
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range hits {
				if h.Key[4:] != "50" || len(hits) != 30 {
					t.Fatalf("%v is among the 30 nearest of %v", h, hits)
				}
			}
		}
		_ = v.Release()
	}
}

// TestChangedWhileScanned: a row that changes behind the scan, when it was already among the best, is
// neither found with its old vector nor missed with its new one, and does not displace other rows.
func TestChangedWhileScanned(t *testing.T) {
	t.Parallel()
	_, fsys := newDisk(t)
	r := rand.New(rand.NewPCG(4, 4))
	m := newModel(16, IP)
	q := randomVector(r, m.dim)
	for i := range 5000 { // more than one chunk
		v := randomVector(r, m.dim)
		if i < 20 {
			v = append([]float32(nil), q...)
			v[i%16] += float32(i) * 1e-3 * v[i%16]
		}
		m.put(Memories, fmt.Sprintf("id%04d", i), v)
	}
	if _, err := WriteBase(Empty(), m.target(fsys), m.take(t)); err != nil {
		t.Fatal(err)
	}
	v := mustView(t, fsys, nil)
	defer v.Release()
	calls := 0
	real := kernelOf(IP)
	s := search{v: v, q: &Query{Vector: q, Limit: 10}, vector: IP.query(q), kernel: func(q []float32, rows []byte, out []float32) {
		if calls++; calls == 2 {
			m.del(Memories, "id0003")
			m.put(Memories, "id0004", q)
			if err := errors.Join(v.Delete(Memories, "id0003"), v.Put(Memories, "id0004", m.live[Memories]["id0004"].id, q)); err != nil {
				t.Error(err)
			}
		}
		real(q, rows, out)
	}}
	list, _, err := s.best(context.Background(), 10)
	if err != nil {
		t.Fatal(err)
	}
	var hits []Hit
	seen := map[string]bool{"id0003": true}
	for _, f := range list {
		if hits = append(hits, f.Hit); seen[f.Key] || f.ID != m.live[Memories][f.Key].id {
			t.Errorf("%v is gone, or is there twice", f.Hit)
		}
		seen[f.Key] = true
	}
	if err := sameHits(hits, m.nearest(Memories, q)[:10]); err != nil {
		t.Fatal(err)
	}
}
