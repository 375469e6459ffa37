package repair_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/vfs/crash"
	"github.com/varve-db/varve/internal/vfs/wrap"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/vector"
)

// cutGroups returns a store whose vectors lack one and have one too many, but are valid by themselves,
// and whose assemblies are damaged, edited, and name members that do not exist.
func cutGroups(t *testing.T) (dir, store string) {
	t.Helper()
	dir = groupStore(t)
	rewriteVectors(t, dir, func(all [2]map[string]stored) {
		delete(all[0], id(46))
		all[0]["ghost"] = stored{800000, vectorOf(77)}
		all[0]["another"] = stored{800008, vectorOf(78)}
	})
	flip(t, file(dir, groupPath(1)), 40)
	remove(t, file(dir, groupPath(2)))
	remove(t, file(dir, memoryPath(3)))
	edit(t, file(dir, groupPath(3)), `"memory_ids": [`, `"memory_ids": [ "no-such", "`+id(46)+`",`)
	st := openStore(t, dir, &varve.Options{NoBackground: true, ReadOnly: true})
	defer func() { _ = st.Close() }()
	return dir, st.Admin().Stats().UUID
}

// mendAll repairs the store and removes missing members.
func mendAll(o *varve.Options) error {
	p, err := varve.PlanRepair(context.Background(), "/s", o, varve.VerifyOptions{})
	if err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	p.TakeOutMissing()
	r, err := p.Apply(context.Background())
	if err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	for _, d := range r.Done {
		if d.Err != nil {
			return fmt.Errorf("%s: %w", d.Action, d.Err)
		}
	}
	for _, f := range r.Remaining {
		if f.Severity != repair.Info || f.Kind == repair.AssemblyMembers {
			return fmt.Errorf("remains: %s", f)
		}
	}
	return nil
}

func (m *machine) served() (all map[string]string, err error) {
	err, _ = m.run(func(o *varve.Options) error {
		st, err := varve.Open(context.Background(), "/s", o)
		if err != nil {
			return err
		}
		if all, err = served(st); err != nil {
			return err
		}
		return st.Close()
	})
	return all, err
}

// vectors returns how many vectors are on the disk; -1 if they cannot be used.
func (m *machine) vectors(store string) int64 {
	set, err := vector.Load(m.disk.Process("look"), "/s", store, nil)
	if err != nil {
		return -1
	}
	n := set.Count(vector.Memories) + set.Count(vector.Assemblies)
	for range vector.Verify(set) {
		n = -1
	}
	_ = set.Release()
	return n
}

// TestRepairGroupsCut kills a repair of vectors and assemblies before each of its operations that change
// the disk, with and without a loss of power: at every moment the vectors are either the old ones or the
// new ones, whole (FAILURES 41), and applying again leads to the same result. Every operation: go test
// ./repair -run RepairGroupsCut -cutstep 1
func TestRepairGroupsCut(t *testing.T) {
	proofs.OneGoroutine(t)
	t.Parallel()
	dir, store := cutGroups(t)
	whole := newMachine()
	whole.load(t, dir)
	before := whole.vectors(store)
	var changing []int
	whole.before = func(op *wrap.Op) {
		if op.Kind.Changes() {
			changing = append(changing, whole.ops)
		}
	}
	if err, _ := whole.run(mendAll); err != nil {
		t.Fatal(err)
	}
	whole.before = nil
	after := whole.vectors(store)
	want, err := whole.served()
	if err != nil {
		t.Fatal(err)
	}
	if want[id(46)+" is in"] != groupID(3) || after != grouped-grouped/12+groups-1 || before != after+1 {
		t.Fatalf("%q, %d vectors before, %d after", want[id(46)+" is in"], before, after)
	}
	stamps := func(all map[string]string) map[string]string { // times are those of the run
		for i := range groups {
			all[groupID(i)] = unstamped(all[groupID(i)])
		}
		return all
	}
	stamps(want)
	step := *cutStep
	if !proofs.Long() {
		step = proofs.Every(10) * max(step, 1)
	}
	patterns := []crash.Pattern{crash.LoseAll, crash.KeepAll, crash.KeepRandom, crash.KeepNames}
	n := 0
	for i := 0; i < len(changing); i += step {
		m := newMachine()
		m.load(t, dir)
		m.killAt = changing[i]
		if err, killed := m.run(mendAll); !killed {
			t.Fatalf("not killed at %d: %v", m.killAt, err)
		}
		m.killAt = 0
		p := patterns[i/step%len(patterns)]
		for _, disk := range []*crash.Disk{m.disk, m.disk.Crash(p, rand.New(rand.NewPCG(uint64(i), 1)))} {
			n++
			m.disk = disk
			disk.SetClock(m.now)
			if now := m.vectors(store); now != before && now != after {
				t.Fatalf("killed at %d of %d, pattern %v: %d vectors, not %d, not %d", i, len(changing), p, now, before, after)
			}
			if err, _ := m.run(mendAll); err != nil {
				t.Fatalf("killed at %d of %d, pattern %v: again: %v", i, len(changing), p, err)
			}
			got, err := m.served()
			if err != nil {
				t.Fatalf("killed at %d: %v", i, err)
			}
			if compare(t, want, stamps(got)); t.Failed() {
				t.Fatalf("killed at %d of %d, pattern %v", i, len(changing), p)
			}
		}
	}
	t.Logf("%d operations that change the disk, %d futures", len(changing), n)
}

// unstamped returns an assembly's document without its times.
func unstamped(doc string) string {
	var out strings.Builder
	for line := range strings.Lines(doc) {
		if !strings.Contains(line, "_at\": ") {
			out.WriteString(line)
		}
	}
	return out.String()
}
