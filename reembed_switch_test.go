package varve

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/view/vectors"
	"github.com/varve-db/varve/vector"
)

// modelOf is a model: its vectors have n dimensions and differ by text.
func modelOf(name string, n int) func(text string) []float32 {
	return func(text string) []float32 {
		h := sha256.Sum256([]byte(name + text))
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(int(h[i]) - 128)
		}
		return v
	}
}

func asking(model func(string) []float32) func([]string) ([][]float32, error) {
	return func(texts []string) ([][]float32, error) {
		var list [][]float32
		for _, text := range texts {
			list = append(list, model(text))
		}
		return list, nil
	}
}

// served says by which model all vectors are that a handle finds; "" and why, when
// they are not all one's.
func served(t *testing.T, st *Store, models map[string]func(string) []float32) (string, string) {
	t.Helper()
	ctx := context.Background()
	view, err := st.inner.Vectors.View(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer view.Release()
	contents := map[string]string{}
	for m, err := range st.Memories(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if m.Content != "" {
			contents[m.ID] = m.Content
		}
	}
	why := ""
	for name, of := range models {
		wrong := ""
		for id, text := range contents {
			row, _, _, err := view.Row(nil, vector.Memories, id)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(row, view.Metric().Row(nil, of(text))) {
				wrong = fmt.Sprintf("%s %q has %d bytes that are not by %s", id, text, len(row), name)
			}
		}
		if wrong == "" {
			return name, ""
		}
		why += wrong + "; "
	}
	return "", why
}

// TestReembedSwitch: every handle finds all old vectors or all new ones, whatever
// the moment, also in another process, and one that has just opened the store.
func TestReembedSwitch(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]func(string) []float32{"same dimension": modelOf("new", 3), "another dimension": modelOf("new", 4)} {
		t.Run(name, func(t *testing.T) {
			was := modelOf("old", 3)
			ctx := context.Background()
			dir := t.TempDir()
			older := &teller{}
			older.set(asking(was))
			old := openTest(t, dir, &Options{NoBackground: true, Embed: older.embed})
			for i := range 10 {
				if _, err := old.Put(ctx, Memory{ID: fmt.Sprint("m", i), Content: fmt.Sprint("text e", i)}); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := old.Put(ctx, Memory{ID: "zblank", Embedding: []float32{5, 5, 5}}); err != nil {
				t.Fatal(err)
			}
			e := &teller{}
			e.set(asking(of))
			st := openTest(t, dir, &Options{NoBackground: true, Embed: e.embed, EmbedModel: "other", EmbedBatch: 2, Clock: secondly()})
			reader := openTest(t, dir, &Options{ReadOnly: true})
			var members []string
			for i := range 5 {
				members = append(members, fmt.Sprint("m", i))
			}
			if _, err := st.Assemblies().Put(ctx, Assembly{ID: "a", Name: "a", MemoryIDs: members}); err != nil {
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
				fresh := openTest(t, dir, &Options{ReadOnly: true})
				by := ""
				for i, h := range []*Store{st, old, reader, fresh} {
					got, why := served(t, h, models)
					if got == "" || by != "" && got != by {
						t.Fatalf("handle %d serves %q, after %q: %s", i, got, by, why)
					}
					by = got
					r, err := storetest.CheckVectors(ctx, h)
					if err != nil || r.Drift() != 0 {
						t.Fatalf("handle %d: %+v, %v", i, r, err)
					}
					hits, err := h.Search(ctx, Query{Vector: models[by]("text e3"), Limit: 1})
					if err != nil || len(hits) != 1 || hits[0].ID != "m3" {
						t.Fatalf("handle %d finds %v, %v by %s", i, hits, err, by)
					}
					if hits, err = h.Search(ctx, Query{Like: "m4", Limit: 20}); err != nil || len(hits) < 9 {
						t.Fatalf("handle %d finds %d like m4, %v", i, len(hits), err)
					}
					var me *ModelError
					other := map[string]string{"old": "new", "new": "old"}[by]
					if _, err := h.Search(ctx, Query{Vector: models[other]("text e3")}); name == "another dimension" &&
						(!errors.As(err, &me) || !errors.Is(err, ErrDimension) || me.Dimension != len(models[by]("x")) || me.Got != len(models[other]("x")) || me.Next == "" && me.Since == 0) {
						t.Fatalf("a vector of the other dimension: %v", err)
					}
				}
				if err := fresh.Close(); err != nil {
					t.Fatal(err)
				}
				seen[by]++
			}
			e.set(func(texts []string) ([][]float32, error) {
				if st.inner.Vectors.Model().Next != "" {
					look()
				}
				return asking(of)(texts)
			})
			r, err := st.Vectors().Reembed(ctx, ReembedOptions{Progress: func(r ReembedReport) {
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
			for i, h := range []*Store{st, old} {
				if by, why := served(t, h, models); by != "new" {
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
			for f, err := range st.Admin().Verify(ctx, VerifyOptions{}) {
				if err != nil || f.Severity > 0 {
					t.Errorf("verify: %+v, %v", f, err)
				}
			}
			// The vectors that were written while it went on are those of the documents.
			if err := st.RebuildVectors(ctx); err != nil {
				t.Fatal(err)
			}
			if by, why := served(t, st, models); by != "new" {
				t.Fatal(why)
			}
			if v := *st.Admin().Config().Vectors; v.Dimension != len(of("x")) || v.Model != "other" {
				t.Errorf("config.json says %+v", v)
			}
		})
	}
}

// A process that has not seen yet that a change of the model has ended does not take the file of
// the next run for one that has no vector of anything: it begins again.
func TestReembedFileOfTheNextRun(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	e := &teller{}
	e.set(asking(modelOf("new", 3)))
	plain := openTest(t, dir, &Options{NoBackground: true})
	v, err := plain.Put(ctx, Memory{ID: "m", Content: "text"})
	must(t, err)
	st := openTest(t, dir, &Options{NoBackground: true, Embed: e.embed, EmbedModel: "new"})
	var amid index.Model
	reembed := func(f func()) {
		t.Helper()
		_, err := st.Vectors().Reembed(ctx, ReembedOptions{Restart: true, Progress: func(ReembedReport) { f() }})
		must(t, err)
	}
	reembed(func() {
		if m := st.inner.Vectors.Model(); m.Switching() {
			amid = m
		}
	})
	if !amid.Switching() {
		t.Fatal("the case is too weak: nobody looked amid the change")
	}
	looked := false
	reembed(func() {
		if st.inner.Vectors.Model().Since != amid.Since {
			return
		}
		looked = true
		got, err := plain.inner.Vectors.EmbeddingNow(ctx, &amid, plain.inner.Engine.Kinds().Memories, "m", v.Version, nil)
		if !errors.Is(err, vectors.ErrBehind) {
			t.Errorf("%v, %v", got, err)
		}
	})
	if !looked {
		t.Fatal("the case is too weak: there was no next run")
	}
}

// TestWriteVectorsBehindASwitch: a process that writes the vectors while another one ends the
// switch to a model begins again with what the documents have by then; not over an index that was
// replaced meanwhile, of which it no longer knows what it lacks.
func TestWriteVectorsBehindASwitch(t *testing.T) {
	t.Parallel()
	for _, replaced := range []bool{false, true} {
		t.Run(fmt.Sprint("index replaced ", replaced), func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			dir := t.TempDir()
			of := modelOf("new", 3)
			e := &teller{}
			e.set(asking(of))
			plain := openTest(t, dir, &Options{NoBackground: true})
			for _, id := range []string{"m0", "m1"} {
				_, err := plain.Put(ctx, Memory{ID: id, Content: "text of " + id})
				must(t, err)
			}
			st := openTest(t, dir, &Options{NoBackground: true, Embed: e.embed, EmbedModel: "new", EmbedBatch: 1})
			_, err := st.Vectors().Reembed(ctx, ReembedOptions{Progress: func(r ReembedReport) {
				if st.inner.Vectors.Model().Switching() && r.Written == 1 {
					must(t, plain.inner.Engine.CatchUp(ctx)) // the last that it sees of the log
				}
			}})
			must(t, err)
			if !plain.inner.Vectors.Model().Switching() {
				t.Fatal("the case is too weak: this process does not think that the switch goes on")
			}
			if replaced {
				_, err := st.Put(ctx, Memory{ID: "m2", Content: "text of m2"})
				must(t, err)
				must(t, st.Flush(ctx))
				must(t, vector.Remove(vfs.OS(), dir)) // as one that could not write them
				_, err = st.Put(ctx, Memory{ID: "m3", Content: "text of m3"})
				must(t, err)
			}
			held, err := plain.inner.Engine.Log().LockFlush(ctx)
			must(t, err)
			err = plain.inner.Vectors.Merge(ctx, held)
			held.Unlock()
			if !replaced {
				must(t, err)
			} else if !errors.Is(err, engine.ErrMoved) {
				t.Errorf("%v, not that it has to begin again", err)
			}
			for i, h := range []*Store{plain, st} {
				if by, why := served(t, h, map[string]func(string) []float32{"new": of}); by != "new" {
					t.Errorf("handle %d: %s", i, why)
				}
			}
		})
	}
}
