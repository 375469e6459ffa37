package undone

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/repair"
)

// jobs are the jobs of the processes that the tests start.
var jobs = storetest.Jobs(map[string]storetest.Job{"undoing": undoing, "writing": writing})

func TestMain(m *testing.M) { storetest.Main(m, jobs) }

// options returns the options of a handle with a small log.
func options(agent string) *varve.Options {
	o := *fixture.SmallLog
	o.Writer = &varve.Writer{Program: "test", Agent: agent}
	return &o
}

// as returns a context for the calls of an agent.
func as(t testing.TB, agent string) context.Context {
	return varve.WithWriter(t.Context(), varve.Writer{Agent: agent})
}

// state is the bytes of every document of a store, by kind and id.
type state map[string]string

// stateOf reads the state of a store.
func stateOf(t testing.TB, st *varve.Store) state {
	t.Helper()
	ctx, s, eng := context.Background(), state{}, storetest.Inner(st).Engine
	for _, k := range eng.Kinds().All {
		for id, err := range eng.IDs(ctx, k, engine.Filters{Expired: true}) {
			fixture.Must(t, err)
			v, err := eng.Find(ctx, k, id, true)
			if errors.Is(err, varve.ErrNotFound) {
				continue // deleted since
			}
			fixture.Must(t, err)
			s[k.Noun+" "+id] = string(v.Doc)
		}
	}
	return s
}

// ofRun returns what the owner "run" has of a state.
func ofRun(s state) state {
	r := state{}
	for name, doc := range s {
		if strings.Contains(name, " run-") {
			r[name] = doc
		}
	}
	return r
}

// differences returns the documents that are not as wanted.
func differences(got, want state) (list []string) {
	for name, doc := range want {
		if is, ok := got[name]; !ok {
			list = append(list, name+" is missing")
		} else if is != doc {
			list = append(list, fmt.Sprintf("%s is\n%s\nwant\n%s", name, is, doc))
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			list = append(list, name+" is there")
		}
	}
	slices.Sort(list)
	return list
}

// same fails the test unless a store is in a state.
func same(t testing.TB, when string, st *varve.Store, want state) {
	t.Helper()
	if list := differences(stateOf(t, st), want); len(list) > 0 {
		t.Fatalf("%s: %d differences:\n%s", when, len(list), strings.Join(list[:min(len(list), 5)], "\n"))
	}
}

// healthy fails the test if anything is wrong with a store, which it closes and opens again.
func healthy(t testing.TB, st *varve.Store) {
	t.Helper()
	for f, err := range st.Admin().Verify(context.Background(), varve.VerifyOptions{}) {
		fixture.Must(t, err)
		if f.Severity != repair.Info {
			t.Errorf("%+v", f)
		}
	}
}

// undo undoes something, which must succeed.
func undo(t testing.TB, ctx context.Context, st *varve.Store, o varve.UndoOptions) *varve.UndoPlan {
	t.Helper()
	p, err := st.Undo(ctx, o)
	if err != nil {
		t.Fatalf("%+v: %v", o, err)
	}
	if p.Done != len(p.Changes) {
		t.Fatalf("%d of %d changes", p.Done, len(p.Changes))
	}
	return p
}

// vector returns an embedding, or none.
func vector(rng *rand.Rand) []float32 {
	if rng.IntN(3) == 0 {
		return nil
	}
	v := make([]float32, 8)
	for i := range v {
		v[i] = rng.Float32()
	}
	return v
}

// change makes one random commit to the documents of an owner, and to assemblies of them. Each owner has its own.
func change(ctx context.Context, st *varve.Store, rng *rand.Rand, owner string, ids int) error {
	id := func() string { return fmt.Sprintf("%s-%d", owner, rng.IntN(ids)) }
	memory := func() varve.Memory {
		return varve.Memory{ID: id(), Content: strings.Repeat("x", rng.IntN(200)) + owner, Embedding: vector(rng),
			Metadata: map[string]any{"session_id": owner, "n": rng.IntN(100)}}
	}
	group := fmt.Sprintf("%s-group%d", owner, rng.IntN(3))
	var err error
	switch rng.IntN(8) {
	case 0:
		err = ignore(st.Delete(ctx, id()), varve.ErrNotFound)
	case 1:
		b := new(varve.Batch)
		for range 1 + rng.IntN(5) {
			b.Put(memory())
		}
		b.Delete(id())
		err = ignore(st.Apply(ctx, b), varve.ErrInvalid)
	case 2:
		var members []string
		for range 1 + rng.IntN(4) {
			if m := id(); !slices.Contains(members, m) {
				members = append(members, m)
			}
		}
		_, err = st.Assemblies().Put(ctx, varve.Assembly{ID: group, Name: group, MemoryIDs: members})
		err = ignore(err, varve.ErrNotFound)
	case 3:
		err = ignore(st.Assemblies().Delete(ctx, group), varve.ErrNotFound)
	case 4:
		_, err = st.Update(ctx, id(), func(m *varve.Memory) error {
			m.Content += "!"
			return nil
		})
		err = ignore(err, varve.ErrNotFound)
	default:
		_, err = st.Put(ctx, memory())
	}
	return err
}

func ignore(err, one error) error {
	if errors.Is(err, one) {
		return nil
	}
	return err
}

// storeIn returns a folder for a store.
func storeIn(t testing.TB) string { return filepath.Join(t.TempDir(), "s") }

// scale returns how much of a proof is run: a share daily, and all with VARVE_LONG.
func scale(everyday, all int) int {
	if proofs.Long() {
		return all
	}
	return everyday
}

// newest returns the position of the newest commit.
func newest(t testing.TB, st *varve.Store) uint64 {
	t.Helper()
	for c, err := range st.Log(t.Context(), varve.LogOptions{}) {
		fixture.Must(t, err)
		return c.LSN
	}
	return 0
}
