package repair_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
)

func TestCleanStore(t *testing.T) {
	t.Parallel()
	st, dir := store(t)
	var sum varve.VerifySummary
	var last, of int64
	o := varve.VerifyOptions{Summary: &sum, Progress: func(done, total int64) {
		if done < last || done > total {
			t.Errorf("progress %d of %d after %d", done, total, last)
		}
		last, of = done, total
	}}
	if list := verify(t, st, o); len(list) > 0 {
		t.Fatal(list)
	}
	if sum.Memories != settled+unspilt+pending || sum.Files != settled+unspilt || sum.Segments < 4 || sum.Archived < 4 ||
		sum.Entries < pending+unspilt || sum.Bytes == 0 {
		t.Errorf("%+v", sum)
	}
	if last == 0 || last != of {
		t.Errorf("progress ended with %d of %d", last, of)
	}
	for _, name := range []string{"memory_index.json", "memory_index.delta.json", "checkpoint"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error("the test store is not what it should be:", err)
		}
	}
	if m, _ := filepath.Glob(filepath.Join(dir, "backups", "*")); len(m) == 0 {
		t.Error("the test store has no backup of its index")
	}
	if err := st.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if list := verify(t, st, varve.VerifyOptions{Workers: 1}); len(list) > 0 {
		t.Fatal(list)
	}
}

func TestReadOnly(t *testing.T) {
	t.Parallel()
	st, dir := store(t)
	ro := openStore(t, dir, &varve.Options{ReadOnly: true})
	if list := verify(t, ro, varve.VerifyOptions{}); len(list) > 0 {
		t.Fatal(list)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "wal", "shared")); err != nil { // as after a reboot
		t.Fatal(err)
	}
	ro = openStore(t, dir, &varve.Options{ReadOnly: true})
	if list := verify(t, ro, varve.VerifyOptions{}); len(list) > 0 {
		t.Fatal(list)
	}
}

// TestSample: the parts of a sample are disjoint and together are everything.
func TestSample(t *testing.T) {
	t.Parallel()
	st, _ := store(t)
	var memories, archived int64
	for n := 1; n <= 3; n++ {
		var sum varve.VerifySummary
		if list := verify(t, st, varve.VerifyOptions{Part: n, Parts: 3, Summary: &sum}); len(list) > 0 {
			t.Fatal(list)
		}
		if all := int64(settled + unspilt + pending); sum.Memories < all/5 || sum.Memories > all/2 {
			t.Errorf("part %d read %d memories of %d", n, sum.Memories, all)
		}
		memories, archived = memories+sum.Memories, archived+sum.Archived
	}
	var sum varve.VerifySummary
	verify(t, st, varve.VerifyOptions{Summary: &sum})
	if memories != sum.Memories || archived != sum.Archived {
		t.Errorf("the parts read %d memories and %d archived segments, the whole %d and %d", memories, archived, sum.Memories,
			sum.Archived)
	}
}

func TestStops(t *testing.T) {
	t.Parallel()
	st, dir := store(t)
	for i := range 3 {
		if err := os.Remove(filepath.Join(dir, "memories", id(i)+".json")); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	for range st.Admin().Verify(t.Context(), varve.VerifyOptions{}) {
		n++
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
		if n++; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	for _, err := range st.Admin().Verify(t.Context(), varve.VerifyOptions{Part: 3, Parts: 2}) {
		if n++; !errors.Is(err, errs.ErrInvalid) {
			t.Error(err)
		}
	}
	if n != 3 {
		t.Errorf("%d results, want 3", n)
	}
}

// TestNoFalseAlarm verifies while two independent handles write, flush, spill, roll and recycle.
func TestNoFalseAlarm(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	rounds := 50
	if !proofs.Long() {
		rounds = 5
	}
	dir := filepath.Join(t.TempDir(), "s")
	o := *storetest.In(&varve.Options{}, storetest.Environment{System: vfs.System{SpillBytes: 100 << 10,
		RoundBytes: 32 << 10}})
	a, b := openStore(t, dir, &o), openStore(t, dir,
		storetest.In(&varve.Options{}, storetest.Environment{System: storetest.Of(&o).System}))
	put(t, a, 0, 900)
	if err := a.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for w, st := range []*varve.Store{a, b, b} {
		seed := uint64(w + 1)
		writers.Go(func() {
			r := rand.New(rand.NewPCG(seed, 0))
			for i := 0; ctx.Err() == nil; i++ {
				n := r.IntN(1000)
				var err error
				switch {
				case i%200 == 150:
					err = st.Flush(context.Background())
				case r.IntN(4) == 0:
					err = st.Delete(context.Background(), id(n))
				default:
					m := memory(n)
					m.Content += m.Content[:r.IntN(len(m.Content))]
					_, err = st.Put(context.Background(), m)
				}
				if err != nil && !errors.Is(err, varve.ErrNotFound) {
					t.Error(err)
					return
				}
			}
		})
	}
	var sum varve.VerifySummary
	segments := int64(0)
	for range rounds / 5 { // by another process, which opens the store for each check
		p := planOf(t, dir)
		if len(p.Actions) > 0 {
			t.Errorf("false alarms: %v", p.Actions)
			break
		}
	}
	for round := range rounds {
		st := []*varve.Store{a, b}[round%2]
		if list := alarms(t, st, varve.VerifyOptions{Summary: &sum, Workers: 1 + round%3}); len(list) > 0 {
			t.Errorf("round %d: false alarms: %v", round, list)
			break
		}
		segments += sum.Segments
	}
	stop()
	writers.Wait()
	t.Logf("%d rounds, %d segments read, the log is at %d", rounds, segments, a.Admin().Stats().Durable)
	if list := alarms(t, a, varve.VerifyOptions{}); len(list) > 0 {
		t.Error(list)
	}
}

// alarms returns what verify finds, except for files in quarantine, which are no fault of the store.
func alarms(t testing.TB, st *varve.Store, o varve.VerifyOptions) (list []varve.Finding) {
	for _, f := range verify(t, st, o) {
		if f.Kind == repair.Quarantined {
			t.Log(f)
			continue
		}
		list = append(list, f)
	}
	return list
}
