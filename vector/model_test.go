package vector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/crash"
)

const (
	testStore = "6a3c0f5e-0000-4000-8000-000000000001"
	testDir   = "/store"
)

// vec is a vector with its number.
type vec struct {
	id int64
	v  []float32
}

// model is the expected content of the files.
type model struct {
	dim     int
	metric  Metric
	lsn     uint64
	live    [2]map[string]vec
	changed [2]map[string]bool
}

func newModel(dim int, m Metric) *model {
	return &model{dim: dim, metric: m, lsn: 8, live: [2]map[string]vec{{}, {}}, changed: [2]map[string]bool{{}, {}}}
}

func (m *model) put(kind Kind, key string, v []float32) {
	m.lsn += 8
	m.live[kind][key] = vec{int64(m.lsn), v}
	m.changed[kind][key] = true
}

func (m *model) del(kind Kind, key string) {
	m.lsn += 8
	delete(m.live[kind], key)
	m.changed[kind][key] = true
}

func (m *model) copy() *model {
	c := *m
	c.live = [2]map[string]vec{maps.Clone(m.live[0]), maps.Clone(m.live[1])}
	c.changed = [2]map[string]bool{maps.Clone(m.changed[0]), maps.Clone(m.changed[1])}
	return &c
}

// take returns the changes since the last call as a plan.
func (m *model) take(t testing.TB) Plan {
	var edits [2][]Edit
	for kind := range m.changed {
		for key := range m.changed[kind] {
			edits[kind] = append(edits[kind], Edit{Key: key, ID: m.live[kind][key].id})
		}
		m.changed[kind] = map[string]bool{}
	}
	live := m.copy().live
	p, err := List(edits, func(dst []float32, kind Kind, e Edit) ([]float32, bool, error) {
		return append(dst, live[kind][e.Key].v...), true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (m *model) target(fsys vfs.FS) Target {
	return Target{FS: fsys, Dir: testDir, Temp: testDir + "/tmp/index.test", Store: testStore, LSN: m.lsn, Chain: 0xabc,
		Now: time.Unix(1700000000, 0), Metric: m.metric, Dim: m.dim, Model: "test"}
}

// row returns the row of a key; nil if it has none.
func (m *model) row(kind Kind, key string) []byte {
	v, ok := m.live[kind][key]
	if !ok {
		return nil
	}
	return m.metric.Row(nil, v.v)
}

// check compares a view with the model: each row, each count, and the neighbours
// of some queries.
func (m *model) check(v *View, r *rand.Rand) error {
	for kind := range kinds {
		if n := v.Count(kind); n != int64(len(m.live[kind])) {
			return fmt.Errorf("kind %d: %d vectors, not %d", kind, n, len(m.live[kind]))
		}
		for key, want := range m.live[kind] {
			row, id, ok, err := v.Row(nil, kind, key)
			if err != nil || !ok || id != want.id || string(row) != string(m.row(kind, key)) {
				return fmt.Errorf("kind %d, %q: id %d, not %d, %v, %v", kind, key, id, want.id, ok, err)
			}
		}
		for range 3 {
			if err := m.checkSearch(v, kind, r); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *model) checkSearch(v *View, kind Kind, r *rand.Rand) error {
	q := randomVector(r, m.dim)
	limit := 1 + r.IntN(12)
	want := m.nearest(kind, q)
	odd := func(key string) bool { return key[len(key)-1]&1 == 1 }
	for name, query := range map[string]Query{
		"all":     {},
		"filter":  {Accept: func(key string) (bool, error) { return odd(key), nil }},
		"keys":    {Keys: append(slices.DeleteFunc(slices.Sorted(maps.Keys(m.live[kind])), func(k string) bool { return !odd(k) }), "absent1")},
		"workers": {Workers: 3},
	} {
		query.Kind, query.Vector, query.Limit = kind, q, limit
		hits, err := v.Search(context.Background(), query)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		list := want
		if query.Accept != nil || query.Keys != nil {
			list = slices.DeleteFunc(slices.Clone(want), func(h Hit) bool { return !odd(h.Key) })
		}
		if err := sameHits(hits, list[:min(limit, len(list))]); err != nil {
			return fmt.Errorf("%s, limit %d of %d: %w", name, limit, len(list), err)
		}
	}
	return nil
}

// nearest returns all vectors that may match, the nearest first, computed in float64.
func (m *model) nearest(kind Kind, q []float32) []Hit {
	var list []Hit
	query := m.metric.query(q)
	for key, v := range m.live[kind] {
		row := m.row(kind, key)
		if zero(row) {
			continue
		}
		x, _ := exact(m.metric, query, row)
		if m.metric == L2 {
			x = 1 / (1 + x)
		}
		list = append(list, Hit{Key: key, ID: v.id, Score: x})
	}
	slices.SortFunc(list, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Key, b.Key))
	})
	return list
}

// sameHits compares hits in order, except for neighbours that rounding may exchange.
func sameHits(got, want []Hit) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d hits, not %d: %v", len(got), len(want), got)
	}
	for i := range got {
		if math.Abs(got[i].Score-want[i].Score) > 2e-6 {
			return fmt.Errorf("hit %d is %v, not %v", i, got[i], want[i])
		}
		if got[i].Key != want[i].Key && !slices.ContainsFunc(want, func(h Hit) bool { return math.Abs(h.Score-got[i].Score) < 4e-6 }) {
			return fmt.Errorf("hit %d is %v, not %v", i, got[i], want[i])
		}
	}
	return nil
}

func mustView(t testing.TB, fsys vfs.FS, prev *Set) *View {
	t.Helper()
	s, err := Load(fsys, testDir, testStore, prev)
	if err != nil {
		t.Fatal(err)
	}
	v, err := NewView(s, IP, 0)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func newDisk(t testing.TB) (*crash.Disk, vfs.FS) {
	d := crash.New()
	fsys := d.Process("writer")
	if err := vfs.MkdirAll(fsys, testDir+"/tmp", 0o700); err != nil {
		t.Fatal(err)
	}
	return d, fsys
}

// TestModel writes, overlays and searches at random, and compares with a model.
func TestModel(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	seed := proofs.Seed(t, 0)
	defer func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	}()
	r := rand.New(rand.NewPCG(seed, 0))
	for round := range 30 {
		_, fsys := newDisk(t)
		m := newModel(1+r.IntN(70), Metric(r.IntN(2)))
		v, err := NewView(Empty(), m.metric, m.dim)
		if err != nil {
			t.Fatal(err)
		}
		for step := range 12 {
			for range r.IntN(40) {
				kind, key := Kind(r.IntN(2)), fmt.Sprintf("k\n%d", r.IntN(60))
				switch r.IntN(8) {
				case 0:
					m.del(kind, key)
					err = v.Delete(kind, key)
				case 1: // an id again, with another vector or with the same
					old, ok := m.live[kind][key]
					if !ok {
						continue
					}
					if r.IntN(2) == 0 {
						old.v = randomVector(r, m.dim)
					}
					m.live[kind][key], m.changed[kind][key] = old, true
					m.lsn += 8
					err = v.Put(kind, key, old.id, old.v)
				case 2:
					m.put(kind, key, make([]float32, m.dim))
					err = v.Put(kind, key, int64(m.lsn), m.live[kind][key].v)
				default:
					m.put(kind, key, randomVector(r, m.dim))
					err = v.Put(kind, key, int64(m.lsn), m.live[kind][key].v)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if err := m.check(v, r); err != nil {
				t.Fatalf("seed %d, round %d, step %d, overlay: %v", seed, round, step, err)
			}
			write := WriteBase
			if v.Set().Exists() && r.IntN(2) == 0 {
				write = WriteDelta
			}
			m.lsn += 8
			if _, err := write(v.Set(), m.target(fsys), m.take(t)); err != nil {
				t.Fatal(err)
			}
			next := mustView(t, fsys, v.Set())
			if err := v.Release(); err != nil {
				t.Fatal(err)
			}
			v = next
			for err := range Verify(v.Set()) {
				t.Fatalf("seed %d, round %d, step %d: %v", seed, round, step, err)
			}
			if err := m.check(v, r); err != nil {
				t.Fatalf("seed %d, round %d, step %d, files: %v", seed, round, step, err)
			}
		}
		_ = v.Release()
	}
}

// TestChangesLeaveOutWhatStands: equal numbers do not mean equal vectors.
func TestChangesLeaveOutWhatStands(t *testing.T) {
	t.Parallel()
	_, fsys := newDisk(t)
	m := newModel(3, L2)
	m.put(Memories, "a", []float32{1, 2, 3})
	m.put(Memories, "b", []float32{1, 2, 3})
	if _, err := WriteBase(Empty(), m.target(fsys), m.take(t)); err != nil {
		t.Fatal(err)
	}
	v := mustView(t, fsys, nil)
	defer v.Release()
	now := map[string][]float32{"a": {1, 2, 3}, "b": {1, 2, 4}}
	a, b := m.live[Memories]["a"].id, m.live[Memories]["b"].id
	left, err := v.Set().Changes(Memories, []Edit{{Key: "a", ID: a}, {Key: "b", ID: b}, {Key: "c"}, {Key: "a", ID: a + 1}}, func(dst []float32, _ Kind, e Edit) ([]float32, bool, error) {
		return append(dst, now[e.Key]...), true, nil
	})
	if err != nil || len(left) != 2 || left[0].Key != "b" || left[1].ID != a+1 {
		t.Fatalf("%v, %v", left, err)
	}
}

func TestQueriesThatAreRefused(t *testing.T) {
	t.Parallel()
	_, fsys := newDisk(t)
	m := newModel(2, IP)
	m.put(Memories, "a", []float32{1, 0})
	m.put(Memories, "zero", []float32{0, 0})
	if _, err := WriteBase(Empty(), m.target(fsys), m.take(t)); err != nil {
		t.Fatal(err)
	}
	v := mustView(t, fsys, nil)
	defer v.Release()
	ctx := context.Background()
	if _, err := v.Search(ctx, Query{Vector: []float32{1}, Limit: 1}); !errors.Is(err, ErrDimension) {
		t.Error(err)
	}
	if err := v.Put(Memories, "b", 99, []float32{1, 2, 3}); !errors.Is(err, ErrDimension) {
		t.Error(err)
	}
	for _, q := range [][]float32{{0, 0}, {1, float32(math.NaN())}, {float32(math.Inf(1)), 0}} {
		if _, err := v.Search(ctx, Query{Vector: q, Limit: 1}); err == nil {
			t.Errorf("%v was searched", q)
		}
	}
	hits, err := v.Search(ctx, Query{Vector: []float32{-1, 0}, Limit: 9})
	if err != nil || len(hits) != 1 || hits[0].Key != "a" || hits[0].Score != -1 {
		t.Error(hits, err)
	}
	if hits, err = v.Search(ctx, Query{Vector: []float32{1, 1}, Limit: 9, MinScore: 0.8}); err != nil || len(hits) != 0 {
		t.Error(hits, err)
	}
}
