package varve_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/view/vectors"
	"github.com/varve-db/varve/vector"
)

// TestReembedSwitch verifies that every handle finds all old vectors or all new ones at any moment, also in another
// process, and in one that has just opened the store.
func TestReembedSwitch(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]func(string) []float32{"same dimension": fixture.ModelOf("new", 3),
		"another dimension": fixture.ModelOf("new", 4)} {
		t.Run(name, func(t *testing.T) {
			was := fixture.ModelOf("old", 3)
			ctx := context.Background()
			dir := t.TempDir()
			older := &fixture.Embedder{}
			older.Set(fixture.AnswerBy(was))
			old := fixture.Open(t, dir, &varve.Options{NoBackground: true, Embed: older.Embed})
			for i := range 10 {
				if _, err := old.Put(ctx, varve.Memory{ID: fmt.Sprint("m", i), Content: fmt.Sprint("text e", i)}); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := old.Put(ctx, varve.Memory{ID: "zblank", Embedding: []float32{5, 5, 5}}); err != nil {
				t.Fatal(err)
			}
			e := &fixture.Embedder{}
			e.Set(fixture.AnswerBy(of))
			st := fixture.Open(t, dir, &varve.Options{NoBackground: true, Embed: e.Embed, EmbedModel: "other", EmbedBatch: 2,
				Clock: fixture.Secondly()})
			reader := fixture.Open(t, dir, &varve.Options{ReadOnly: true})
			var members []string
			for i := range 5 {
				members = append(members, fmt.Sprint("m", i))
			}
			if _, err := st.Assemblies().Put(ctx, varve.Assembly{ID: "a", Name: "a", MemoryIDs: members}); err != nil {
				t.Fatal(err)
			}
			if err := old.Flush(ctx); err != nil {
				t.Fatal(err)
			}
			before := map[string]time.Time{}
			for m, err := range st.Memories(ctx) {
				if err != nil {
					t.Fatal(err)
				}
				before[m.ID] = m.UpdatedAt
			}
			models := map[string]func(string) []float32{"old": was, "new": of}
			seen := map[string]int{}
			look := func() {
				t.Helper()
				fresh := fixture.Open(t, dir, &varve.Options{ReadOnly: true})
				by := ""
				for i, h := range []*varve.Store{st, old, reader, fresh} {
					got, why := fixture.ModelServed(t, h, models)
					if got == "" || by != "" && got != by {
						t.Fatalf("handle %d serves %q, after %q: %s", i, got, by, why)
					}
					by = got
					r, err := storetest.CheckVectors(ctx, h)
					if err != nil || r.Drift() != 0 {
						t.Fatalf("handle %d: %+v, %v", i, r, err)
					}
					hits, err := h.Search(ctx, varve.Query{Vector: models[by]("text e3"), Limit: 1})
					if err != nil || len(hits) != 1 || hits[0].ID != "m3" {
						t.Fatalf("handle %d finds %v, %v by %s", i, hits, err, by)
					}
					if hits, err = h.Search(ctx, varve.Query{Like: "m4", Limit: 20}); err != nil || len(hits) < 9 {
						t.Fatalf("handle %d finds %d like m4, %v", i, len(hits), err)
					}
					var me *varve.ModelError
					other := map[string]string{"old": "new", "new": "old"}[by]
					if _, err := h.Search(ctx, varve.Query{Vector: models[other]("text e3")}); name == "another dimension" &&
						(!errors.As(err, &me) || !errors.Is(err, varve.ErrDimension) || me.Dimension != len(models[by]("x")) ||
							me.Got != len(models[other]("x")) || me.Next == "" && me.Since == 0) {
						t.Fatalf("a vector of the other dimension: %v", err)
					}
				}
				if err := fresh.Close(); err != nil {
					t.Fatal(err)
				}
				seen[by]++
			}
			e.Set(func(texts []string) ([][]float32, error) {
				if storetest.Inner(st).Vectors.Model().Next != "" {
					look()
				}
				return fixture.AnswerBy(of)(texts)
			})
			r, err := st.Vectors().Reembed(ctx, varve.ReembedOptions{Progress: func(r varve.ReembedReport) {
				look()
				if r.Written == 4 {
					if err := old.Flush(ctx); err != nil {
						t.Fatal(err)
					}
					look()
				}
			}})
			if err != nil || r.Computed != 10 || r.Written != 10 {
				t.Fatalf("%+v, %v", r, err)
			}
			if seen["old"] < 10 || seen["new"] < 5 {
				t.Fatalf("looked %v", seen)
			}
			for i, h := range []*varve.Store{st, old} {
				if by, why := fixture.ModelServed(t, h, models); by != "new" {
					t.Fatalf("handle %d: %s", i, why)
				}
			}
			var composite []float32
			for m, err := range st.Memories(ctx) {
				want := of(m.Content)
				if m.ID == "zblank" {
					want = []float32{5, 5, 5}
				}
				if err != nil || !slices.Equal(m.Embedding, want) {
					t.Errorf("%s has %v, want %v, %v", m.ID, m.Embedding, want, err)
				}
				if !m.UpdatedAt.Equal(before[m.ID]) {
					t.Errorf("updated_at of %s moved from %v to %v", m.ID, before[m.ID], m.UpdatedAt)
				}
			}
			a, err := st.Assemblies().Get(ctx, "a")
			if composite = a.CompositeEmbedding; err != nil || len(composite) != len(of("x")) {
				t.Fatal(composite, err)
			}
			if err := st.Admin().Compact(ctx); err != nil {
				t.Fatal(err)
			}
			for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
				if err != nil || f.Severity > 0 {
					t.Errorf("verify: %+v, %v", f, err)
				}
			}
			// The vectors that were written during the switch are those of the documents.
			if err := storetest.Inner(st).RebuildVectors(ctx); err != nil {
				t.Fatal(err)
			}
			if by, why := fixture.ModelServed(t, st, models); by != "new" {
				t.Fatal(why)
			}
			if v := *st.Admin().Config().Vectors; v.Dimension != len(of("x")) || v.Model != "other" {
				t.Errorf("config.json says %+v", v)
			}
		})
	}
}

// TestReembedFileOfTheNextRun verifies that a process that has not yet seen the end of a change of the model does not
// treat the file of the next run as one without vectors: it starts over.
func TestReembedFileOfTheNextRun(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	e := &fixture.Embedder{}
	e.Set(fixture.AnswerBy(fixture.ModelOf("new", 3)))
	plain := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	v, err := plain.Put(ctx, varve.Memory{ID: "m", Content: "text"})
	fixture.Must(t, err)
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true, Embed: e.Embed, EmbedModel: "new"})
	var amid index.Model
	reembed := func(f func()) {
		t.Helper()
		_, err := st.Vectors().Reembed(ctx, varve.ReembedOptions{Restart: true, Progress: func(varve.ReembedReport) { f() }})
		fixture.Must(t, err)
	}
	reembed(func() {
		if m := storetest.Inner(st).Vectors.Model(); m.Switching() {
			amid = m
		}
	})
	if !amid.Switching() {
		t.Fatal("the case is too weak: nobody looked amid the change")
	}
	looked := false
	reembed(func() {
		if storetest.Inner(st).Vectors.Model().Since != amid.Since {
			return
		}
		looked = true
		got, err := storetest.Inner(plain).Vectors.EmbeddingNow(ctx, &amid, storetest.Inner(plain).Engine.Kinds().Memories,
			"m", v.Version, nil)
		if !errors.Is(err, vectors.ErrBehind) {
			t.Errorf("%v, %v", got, err)
		}
	})
	if !looked {
		t.Fatal("the case is too weak: there was no next run")
	}
}

// TestWriteVectorsBehindASwitch verifies that a process that writes the vectors while another one ends the switch to a
// model starts over with the current documents; and that it does not over an index that was replaced meanwhile, because
// it no longer knows which changes that index lacks.
func TestWriteVectorsBehindASwitch(t *testing.T) {
	t.Parallel()
	for _, replaced := range []bool{false, true} {
		t.Run(fmt.Sprint("index replaced ", replaced), func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			dir := t.TempDir()
			of := fixture.ModelOf("new", 3)
			e := &fixture.Embedder{}
			e.Set(fixture.AnswerBy(of))
			plain := fixture.Open(t, dir, &varve.Options{NoBackground: true})
			for _, id := range []string{"m0", "m1"} {
				_, err := plain.Put(ctx, varve.Memory{ID: id, Content: "text of " + id})
				fixture.Must(t, err)
			}
			st := fixture.Open(t, dir, &varve.Options{NoBackground: true, Embed: e.Embed, EmbedModel: "new", EmbedBatch: 1})
			_, err := st.Vectors().Reembed(ctx, varve.ReembedOptions{Progress: func(r varve.ReembedReport) {
				if storetest.Inner(st).Vectors.Model().Switching() && r.Written == 1 {
					fixture.Must(t, storetest.Inner(plain).Engine.CatchUp(ctx)) // the last part of the log that it sees
				}
			}})
			fixture.Must(t, err)
			if !storetest.Inner(plain).Vectors.Model().Switching() {
				t.Fatal("the case is too weak: this process does not think that the switch goes on")
			}
			if replaced {
				_, err := st.Put(ctx, varve.Memory{ID: "m2", Content: "text of m2"})
				fixture.Must(t, err)
				fixture.Must(t, st.Flush(ctx))
				fixture.Must(t, vector.Remove(vfs.OS(), dir)) // like a process that could not write them
				_, err = st.Put(ctx, varve.Memory{ID: "m3", Content: "text of m3"})
				fixture.Must(t, err)
			}
			held, err := storetest.Inner(plain).Engine.Log().LockFlush(ctx)
			fixture.Must(t, err)
			err = storetest.Inner(plain).Vectors.Merge(ctx, held)
			held.Unlock()
			if !replaced {
				fixture.Must(t, err)
			} else if !errors.Is(err, engine.ErrMoved) {
				t.Errorf("%v, not that it has to begin again", err)
			}
			for i, h := range []*varve.Store{plain, st} {
				if by, why := fixture.ModelServed(t, h, map[string]func(string) []float32{"new": of}); by != "new" {
					t.Errorf("handle %d: %s", i, why)
				}
			}
		})
	}
}
