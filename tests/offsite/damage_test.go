package offsite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	copies "github.com/varve-db/varve/internal/copy/offsite"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/remote"
)

// snapshotNow makes the sender save a snapshot with its next Send: more than a day passes.
func (x *outsider) snapshotNow(now *time.Time) {
	x.t.Helper()
	*now = now.Add(25 * time.Hour)
	x.check(x.st.Admin().Offsite().Send(x.t.Context(), x.remote))
}

// timed opens the store with a clock that a test sets; each reading is a millisecond later.
func (x *outsider) timed() (now *time.Time) {
	x.t.Helper()
	x.check(x.st.Close())
	at := time.Now().UTC().Truncate(time.Second).Add(-72 * time.Hour)
	x.o.Clock = func() time.Time { at = at.Add(time.Millisecond); return at }
	x.open()
	return &at
}

// entries returns the files of the copy's entries, the oldest first.
func (x *outsider) entries() []string {
	x.t.Helper()
	names, err := filepath.Glob(filepath.Join(x.dir, "remote", "log", "*", "*"))
	x.check(err)
	slices.Sort(names)
	return names
}

func (x *outsider) flip(name string) {
	x.t.Helper()
	b, err := os.ReadFile(name)
	x.check(err)
	b[len(b)/2] ^= 1
	x.check(os.Chmod(name, 0o600))
	x.check(os.WriteFile(name, b, 0o600))
}

// cloneAt makes a clone and returns its documents.
func (x *outsider) cloneAt(at time.Time) (map[string]string, varve.CloneReport, error) {
	x.t.Helper()
	to := filepath.Join(x.dir, fmt.Sprintf("clone%d", time.Now().UnixNano()))
	r, err := varve.Clone(x.t.Context(), x.remote, to, &varve.CloneOptions{At: at, Options: x.o})
	return files(x.t, to), r, err
}

// twoSnapshots makes a copy with two snapshots, and returns the documents of the store and the moment between them.
func (x *outsider) twoSnapshots() (now *time.Time, between time.Time, before, newest map[string]string) {
	x.t.Helper()
	now = x.timed()
	store := filepath.Join(x.dir, "store")
	x.put("a", "first")
	x.check(x.st.Admin().Offsite().Add(x.t.Context(), x.remote, x.url))
	for i := range 300 {
		x.put(fmt.Sprintf("m%d", i%20), fmt.Sprintf("%d %0512d", i, i))
	}
	x.check(x.st.Flush(x.t.Context()))
	x.check(x.st.Admin().Offsite().Send(x.t.Context(), x.remote))
	between, before = *now, files(x.t, store)
	x.snapshotNow(now)
	for i := range 300 {
		x.put(fmt.Sprintf("m%d", i%20), fmt.Sprintf("again %d %0512d", i, i))
	}
	x.check(x.st.Flush(x.t.Context()))
	x.check(x.st.Admin().Offsite().Send(x.t.Context(), x.remote))
	return now, between, before, files(x.t, store)
}

// TestCloneOfADamagedCopy: damage in a snapshot or a piece prevents the clone of no moment to which another snapshot
// leads, and is named.
func TestCloneOfADamagedCopy(t *testing.T) {
	x := newOutsider(t)
	_, between, before, newest := x.twoSnapshots()
	list, err := x.remote.Snapshots(t.Context())
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	body := filepath.Join(x.dir, "remote", "snapshots", list[1].ID.String()+".body")
	sound, err := os.ReadFile(body)
	x.check(err)
	for name, damage := range map[string]func(){
		"flipped": func() { x.flip(body) },
		"cut":     func() { x.check(os.Truncate(body, int64(len(sound)/2))) },
		"missing": func() { x.check(os.Remove(body)) },
	} {
		damage()
		got, r, err := x.cloneAt(time.Time{})
		if err != nil || len(r.Damage) == 0 {
			t.Fatalf("%s: the newest snapshot is damaged, the one before is not: %v, %v", name, r.Damage, err)
		}
		t.Log(name, r.Damage)
		storetest.SameTexts(t, "the newest moment", got, newest)
		x.check(os.WriteFile(body, sound, 0o600))
	}
	// a piece that only the older snapshot needs
	first := x.entries()[1]
	x.flip(first)
	got, r, err := x.cloneAt(time.Time{})
	if err != nil || len(r.Damage) == 0 {
		t.Fatal(r.Damage, err)
	}
	storetest.SameTexts(t, "the newest moment", got, newest)
	x.flip(first)
	// a piece after the moment between
	all := x.entries()
	x.flip(all[len(all)-1])
	got, r, err = x.cloneAt(between)
	if err != nil || len(r.Damage) == 0 {
		t.Fatal(r.Damage, err)
	}
	storetest.SameTexts(t, "the moment between", got, before)
}

// TestCloneAfterKilledPruning: a pruning that was killed after it has removed pieces, and before it removed the
// snapshots that need them, prevents no clone of a later moment.
func TestCloneAfterKilledPruning(t *testing.T) {
	x := newOutsider(t)
	_, between, old, newest := x.twoSnapshots()
	list, err := x.remote.Snapshots(t.Context())
	x.check(err)
	geo := list[1].Geometry
	before := geo.Start(geo.Number(list[1].End.LSN) - 1)
	if n, err := x.remote.Prune(t.Context(), list[1].Epoch, before); err != nil || n == 0 {
		t.Fatal(n, err)
	}
	got, r, err := x.cloneAt(time.Time{})
	if err != nil || len(r.Damage) == 0 {
		t.Fatal(r.Damage, err)
	}
	storetest.SameTexts(t, "the newest moment", got, newest)
	got, _, err = x.cloneAt(between) // the store of the newer snapshot
	x.check(err)
	storetest.SameTexts(t, "the moment between", got, old)
	if _, _, err := x.cloneAt(list[0].Time); err == nil {
		t.Fatal("a moment whose pieces were pruned was cloned")
	} else {
		t.Log(err)
	}
}

// TestCloneIsNeverLess: if no sound pieces lead to the newest moment, the clone fails; the error names the last moment
// before the damage, which can be cloned.
func TestCloneIsNeverLess(t *testing.T) {
	x := newOutsider(t)
	_, _, _, _ = x.twoSnapshots()
	all := x.entries()
	x.flip(all[len(all)-1])
	_, _, err := x.cloneAt(time.Time{})
	var damaged *copies.DamagedError
	if !errors.As(err, &damaged) || !errors.Is(err, varve.ErrCorrupt) || damaged.Last.IsZero() {
		t.Fatalf("the newest piece is damaged: %v", err)
	}
	t.Log(err)
	_, r, err := x.cloneAt(damaged.Last)
	if err != nil || len(r.Damage) == 0 || !r.Time.Equal(damaged.Last) {
		t.Fatal(r, err)
	}
}

// TestEpochWithoutSnapshot: an epoch that has no snapshot yet hides no older moments, and the newest one is not cloned
// as an older one.
func TestEpochWithoutSnapshot(t *testing.T) {
	x := newOutsider(t)
	ctx := t.Context()
	now, between, before, _ := x.twoSnapshots()
	head, err := x.remote.Head(ctx)
	x.check(err)
	*now = now.Add(time.Hour)
	_, err = x.remote.Begin(ctx, &remote.Anchor{Follows: head.Number, Geometry: head.Geometry, Log: head.Log, At: head.At,
		Machine: head.Machine, Request: head.Request, Format: remote.Format, Time: *now})
	x.check(err)
	_, _, err = x.cloneAt(time.Time{})
	var none *copies.MomentError
	if !errors.As(err, &none) || none.Last.IsZero() || !strings.Contains(err.Error(), "--at") {
		t.Fatal(err)
	}
	t.Log(err)
	_, _, err = x.cloneAt(none.Last)
	x.check(err)
	got, _, err := x.cloneAt(between)
	x.check(err)
	storetest.SameTexts(t, "the moment between", got, before)
}

// TestWrongSnapshot: a snapshot whose description does not fit the pieces is damage.
func TestWrongSnapshot(t *testing.T) {
	x := newOutsider(t)
	_, _, _, newest := x.twoSnapshots()
	for what, change := range map[string]func(s *remote.Snapshot){
		"chain hash": func(s *remote.Snapshot) { s.End.Sum++ },
		"begin":      func(s *remote.Snapshot) { s.Begin.Sum++ },
		"geometry":   func(s *remote.Snapshot) { s.Geometry.Size *= 2 },
		"log":        func(s *remote.Snapshot) { s.Log++ },
	} {
		w := &changed{Remote: x.remote, change: change}
		to := filepath.Join(x.dir, "wrong "+what)
		r, err := varve.Clone(t.Context(), w, to, &varve.CloneOptions{Fork: true, Options: x.o})
		if err != nil || len(r.Damage) == 0 {
			t.Errorf("%s: %v, %v", what, r.Damage, err)
			continue
		}
		storetest.SameTexts(t, what, files(t, to), newest)
	}
}

// changed is a remote that describes its newest snapshot wrongly.
type changed struct {
	remote.Remote
	change func(*remote.Snapshot)
}

// Snapshots returns the snapshots, the last of them changed.
func (c *changed) Snapshots(ctx context.Context) ([]remote.Snapshot, error) {
	list, err := c.Remote.Snapshots(ctx)
	if n := len(list); n > 0 {
		c.change(&list[n-1])
	}
	return list, err
}
