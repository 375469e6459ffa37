package embeddings

import (
	"bytes"
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
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/view/vectors"
	"github.com/varve-db/varve/vector"
)

// emptiedStore makes a store that had vectors of 3 dimensions in its files, and has no memory anymore.
func emptiedStore(t *testing.T, dir string, o *varve.Options, n int, told bool) *varve.Store {
	t.Helper()
	ctx := context.Background()
	e := &fixture.Embedder{}
	e.Set(fixture.AnswerBy(fixture.ModelOf("old", 3)))
	with := *o
	with.Embed, with.EmbedModel = e.Embed, "old"
	st, err := varve.Open(ctx, dir, &with)
	fixture.Must(t, err)
	for i := range n {
		_, err := st.Put(ctx, varve.Memory{ID: fmt.Sprint("m", i), Content: fmt.Sprint("text ", i)})
		fixture.Must(t, err)
		if i == n-2 {
			fixture.Must(t, st.Admin().Compact(ctx))
		}
	}
	if told {
		// config.json sets the dimension, the log records that it was decided
		_, err := st.Vectors().Reembed(ctx, varve.ReembedOptions{})
		fixture.Must(t, err)
	}
	fixture.Must(t, st.Flush(ctx))
	for i := range n {
		fixture.Must(t, st.Delete(ctx, fmt.Sprint("m", i)))
	}
	fixture.Must(t, st.Flush(ctx))
	return st
}

// vectorFiles returns the files in vector_index, without the lock.
func vectorFiles(t *testing.T, dir string) []string {
	t.Helper()
	names, err := os.ReadDir(filepath.Join(dir, vector.Folder))
	fixture.Must(t, err)
	var list []string
	for _, e := range names {
		if e.Name() != vectors.ComputedLock {
			list = append(list, e.Name())
		}
	}
	return list
}

// A store that had vectors and has none anymore accepts those of a model of another dimension, in every
// process, once it was re-embedded.
func TestReembedEmptied(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, told := range []bool{false, true} {
		for _, small := range []int64{0, 1} {
			for _, name := range []string{"new", "old", ""} {
				t.Run(fmt.Sprint(told, small, name), func(t *testing.T) {
					dir := t.TempDir()
					o := storetest.In(&varve.Options{NoBackground: true},
						storetest.Environment{System: vfs.System{SmallVectors: small}})
					was := emptiedStore(t, dir, o, 60, told)
					defer was.Close()
					plain, reader := fixture.Open(t, dir, o), fixture.Open(t, dir, &varve.Options{ReadOnly: true})
					_, err := plain.Put(ctx, varve.Memory{ID: "early", Embedding: []float32{1, 2, 3, 4}})
					if !errors.Is(err, varve.ErrDimension) || !strings.Contains(err.Error(), "memctl reindex") {
						t.Fatal(err)
					}
					e, is := &fixture.Embedder{}, fixture.ModelOf("new", 4)
					e.Set(fixture.AnswerBy(is))
					with := *o
					with.Embed, with.EmbedModel = e.Embed, name
					st := fixture.Open(t, dir, &with)
					r, err := st.Vectors().Reembed(ctx, varve.ReembedOptions{})
					if err != nil || r.Written != 0 || r.Total != 0 {
						t.Fatal(r, err)
					}
					if s := st.Admin().Stats(); s.Switching || s.NextModel != "" || s.Model != name {
						t.Errorf("%+v", s)
					}
					for i, h := range []*varve.Store{plain, was} {
						if _, err := h.Put(ctx, varve.Memory{ID: "of3", Embedding: []float32{1, 2, 3}}); !errors.Is(err,
							varve.ErrDimension) {
							t.Errorf("handle %d: a vector of the dimension before: %v", i, err)
						}
						_, err := h.Put(ctx, varve.Memory{ID: fmt.Sprint("by hand ", i), Embedding: is(fmt.Sprint(i))})
						fixture.Must(t, err)
					}
					m, err := st.Put(ctx, varve.Memory{ID: "m", Content: "y"})
					if err != nil || !slices.Equal(m.Embedding, is("y")) {
						t.Fatal(m, err)
					}
					check := func(what string, handles ...*varve.Store) {
						t.Helper()
						for i, h := range handles {
							hits, err := h.Search(ctx, varve.Query{Vector: is("1"), Limit: 1})
							if err != nil || len(hits) != 1 || hits[0].ID != "by hand 1" {
								t.Fatalf("%s: handle %d finds %v, %v", what, i, hits, err)
							}
							fixture.CheckVectors(t, h, what, 3)
							if r, err := storetest.CheckVectors(ctx, h); err != nil || r.Dimension != 4 {
								t.Fatalf("%s: handle %d: %+v, %v", what, i, r, err)
							}
						}
					}
					check("put", st, plain, was, reader)
					fixture.Must(t, st.Flush(ctx))
					fixture.Sound(t, dir)
					check("flushed", st, plain, was, reader, fixture.Open(t, dir, &varve.Options{ReadOnly: true}))
					fixture.Must(t, was.Delete(ctx, "m"))
					_, err = was.Put(ctx, varve.Memory{ID: "m", Embedding: is("y")})
					fixture.Must(t, err)
					fixture.Must(t, st.Admin().RebuildIndex(ctx))
					fixture.Must(t, st.Admin().Compact(ctx))
					check("rebuilt", st, plain, was, reader, fixture.Open(t, dir, o))
					fixture.Sound(t, dir)
					if v := *fixture.Open(t, dir, o).Admin().Config().Vectors; v.Dimension != 4 {
						t.Errorf("config.json says %+v", v)
					}
				})
			}
		}
	}
}

// The first flush removes what the previous model has left, even if nothing was put since: a purge could
// not find it there.
func TestReembedEmptiedLeavesNothing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	o := storetest.In(&varve.Options{NoBackground: true}, storetest.Environment{System: vfs.System{SmallVectors: 1}})
	st := emptiedStore(t, dir, o, 60, false)
	defer st.Close()
	row := vector.IP.Row(nil, fixture.ModelOf("old", 3)("text 2"))
	has := func() (names []string) {
		for _, name := range vectorFiles(t, dir) {
			b, err := os.ReadFile(filepath.Join(dir, vector.Folder, name))
			fixture.Must(t, err)
			if bytes.Contains(b, row) || bytes.Contains(b, []byte("m2")) {
				names = append(names, name)
			}
		}
		return names
	}
	if len(has()) == 0 {
		t.Fatal("the case is too weak: the vectors have nothing of it")
	}
	e := &fixture.Embedder{}
	e.Set(fixture.AnswerBy(fixture.ModelOf("new", 4)))
	with := *o
	with.Embed, with.EmbedModel = e.Embed, "new"
	other := fixture.Open(t, dir, &with)
	_, err := other.Vectors().Reembed(ctx, varve.ReembedOptions{})
	fixture.Must(t, err)
	if _, err := st.Admin().Purge(ctx, "m2"); err != nil {
		t.Fatal(err)
	}
	if names := has(); len(names) > 0 {
		t.Errorf("%q still have it", names)
	}
	if names := vectorFiles(t, dir); len(names) > 0 {
		t.Errorf("%q are nobody's", names)
	}
	fixture.Sound(t, dir)
	fixture.CheckVectors(t, st, "purged", 0)
	fixture.CheckVectors(t, other, "purged", 0)
}

// Expired memories do not fix the dimension.
func TestReembedExpired(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	clock := fixture.ClockAt(began)
	e := &fixture.Embedder{}
	e.Set(fixture.AnswerBy(fixture.ModelOf("old", 3)))
	st := fixture.Open(t, t.TempDir(), &varve.Options{NoBackground: true, Embed: e.Embed, Clock: clock.Tick})
	_, err := st.Put(ctx, varve.Memory{ID: "a", Content: "x", ExpiresAt: began.Add(time.Hour)})
	fixture.Must(t, err)
	fixture.Must(t, st.Flush(ctx))
	clock.Add(2 * time.Hour)
	is := fixture.ModelOf("new", 4)
	e.Set(fixture.AnswerBy(is))
	storetest.Inner(st).Embedding.Dimension = 0 // another process
	_, err = st.Vectors().Reembed(ctx, varve.ReembedOptions{})
	fixture.Must(t, err)
	if m, err := st.Put(ctx, varve.Memory{ID: "b", Content: "y"}); err != nil || !slices.Equal(m.Embedding, is("y")) {
		t.Error(m, err)
	}
	if r, err := storetest.CheckVectors(ctx, st); err != nil || r.Drift() != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// If the dimension need not be known, the embedder is not asked; if it does not answer, nothing is
// changed, and the error says what it was asked for.
func TestReembedAsksForTheDimension(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	e := &fixture.Embedder{}
	stop := errors.New("down")
	e.Set(func([]string) ([][]float32, error) { return nil, stop })
	st := fixture.Open(t, t.TempDir(), &varve.Options{NoBackground: true, Embed: e.Embed, EmbedModel: "new"})
	if _, err := st.Vectors().Reembed(ctx,
		varve.ReembedOptions{}); err != nil || len(e.Asked()) != 0 || st.Admin().Stats().Model != "new" {
		t.Fatal("nothing has decided the dimension:", err, st.Admin().Stats())
	}
	dir := t.TempDir()
	o := &varve.Options{NoBackground: true}
	fixture.Must(t, emptiedStore(t, dir, o, 60, false).Close())
	st = fixture.Open(t, dir, &varve.Options{NoBackground: true, Embed: e.Embed, EmbedModel: "new"})
	if _, err := st.Vectors().Reembed(ctx, varve.ReembedOptions{}); !errors.Is(err, stop) || !strings.Contains(err.Error(),
		"to find its dimension") {
		t.Fatal(err)
	}
	if s := st.Admin().Stats(); s.Model != "old" || s.Switching {
		t.Errorf("%+v", s)
	}
	if model, err := st.Vectors().CancelReembed(ctx); err != nil || model != "new" {
		t.Fatal(model, err)
	}
	_, err := st.Put(ctx, varve.Memory{ID: "a", Embedding: []float32{1, 2, 3}})
	fixture.Must(t, err)
	fixture.CheckVectors(t, st, "called off", 1)
}

// config.json can give an emptied store another dimension, as the message of a refused write advises.
func TestEmptiedByConfig(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	o := &varve.Options{NoBackground: true}
	st := emptiedStore(t, dir, o, 60, false)
	defer st.Close()
	c := st.Admin().Config()
	v := fixture.VectorSettings(c)
	v.Dimension = 4
	c.Vectors = (*varve.VectorConfig)(&v)
	fixture.Must(t, st.Admin().SetConfig(c))
	_, err := st.Put(ctx, varve.Memory{ID: "a", Embedding: []float32{1, 2, 3, 4}})
	fixture.Must(t, err)
	fixture.CheckVectors(t, st, "put", 1)
	fixture.Must(t, st.Flush(ctx))
	fixture.Sound(t, dir)
	fixture.CheckVectors(t, fixture.Open(t, dir, o), "opened", 1)
}

// Wherever a re-embedding of an emptied store is killed, and whatever the loss of power leaves: the next
// run completes it, and the store is intact before and after.
func TestReembedEmptiedCut(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	is := fixture.ModelOf("new", 4)
	embedding := func(o *varve.Options) *varve.Options {
		o.Embed = func(_ context.Context, texts []string) ([][]float32, error) { return fixture.AnswerBy(is)(texts) }
		o.EmbedModel = "new"
		return o
	}
	for what, fault := range map[string]error{"killed": nil, "error": errors.New("injected")} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			fixture.CutAtEach(t, func(t *testing.T) *fixture.Rig {
				r, _ := fixture.Filled(t)
				st := emptiedStore(t, "/s", r.Options(2), 5, false)
				for i := range 6 {
					fixture.Must(t, st.Delete(ctx, fmt.Sprint("k", i)))
				}
				fixture.Must(t, st.Close())
				return r
			}, fault, func(r *fixture.Rig) error {
				st, err := varve.Open(ctx, "/s", embedding(r.Options(3)))
				if err != nil {
					return err
				}
				_, err = st.Vectors().Reembed(ctx, varve.ReembedOptions{})
				if err == nil {
					err = st.Flush(ctx)
				}
				return errors.Join(err, st.Close())
			}, func(t *testing.T, r *fixture.Rig, done bool) {
				sound := func(st *varve.Store, vectors int64) {
					t.Helper()
					fixture.CheckVectors(t, st, "cut", vectors)
					for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
						if err != nil || f.Severity > varve.SeverityInfo {
							t.Errorf("verify: %s, %v", f.String(), err)
						}
					}
				}
				st, err := varve.Open(ctx, "/s", embedding(r.Options(4)))
				fixture.Must(t, err)
				sound(st, 0)
				_, err = st.Put(ctx, varve.Memory{ID: "a", Embedding: is("a")})
				switch {
				case err == nil:
				case done || !errors.Is(err, varve.ErrDimension):
					t.Error(err)
				default:
					if _, err := st.Vectors().Reembed(ctx, varve.ReembedOptions{}); err != nil {
						t.Error(err)
					}
					_, err = st.Put(ctx, varve.Memory{ID: "a", Embedding: is("a")})
					fixture.Must(t, err)
				}
				if _, err := st.Put(ctx, varve.Memory{ID: "b", Embedding: []float32{1, 2, 3}}); !errors.Is(err,
					varve.ErrDimension) {
					t.Error("two dimensions:", err)
				}
				sound(st, 1)
				_, err = st.Vectors().Reembed(ctx, varve.ReembedOptions{})
				fixture.Must(t, err)
				fixture.Must(t, st.Flush(ctx))
				sound(st, 1)
				fixture.Must(t, st.Close())
			})
		})
	}
}

// During a change of the model, memories that had no embedding before it are found by the computed
// vectors, even if the store had no vector at all and every index and every process knew that its
// vectors, none, were complete.
func TestReembedOfNoVectors(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	is := fixture.ModelOf("new", 4)
	const n = 6
	for _, had := range []string{"no vectors ever", "vectors of what is gone", "vectors of a model that is gone"} {
		for _, rebuilt := range []bool{false, true} { // the index, which then does not describe the vectors
			t.Run(fmt.Sprint(had, ", rebuilt ", rebuilt), func(t *testing.T) {
				dir := t.TempDir()
				o := storetest.In(&varve.Options{NoBackground: true}, storetest.Environment{System: vfs.System{SmallVectors: 1}})
				if had != "no vectors ever" {
					fixture.Must(t, emptiedStore(t, dir, o, 60, true).Close())
				}
				if had == "vectors of a model that is gone" {
					e := &fixture.Embedder{}
					e.Set(fixture.AnswerBy(fixture.ModelOf("mid", 5)))
					with := *o
					with.Embed, with.EmbedModel = e.Embed, "mid"
					st := fixture.Open(t, dir, &with)
					_, err := st.Vectors().Reembed(ctx, varve.ReembedOptions{})
					fixture.Must(t, err)
					fixture.Must(t, st.Flush(ctx))
					if names := vectorFiles(t, dir); len(names) > 0 {
						t.Fatalf("%q are nobody's", names)
					}
				}
				plain, reader := fixture.Open(t, dir, o), fixture.Open(t, dir, &varve.Options{ReadOnly: true})
				for i := range n {
					_, err := plain.Put(ctx, varve.Memory{ID: fmt.Sprint("m", i), Content: fmt.Sprint("text ", i)})
					fixture.Must(t, err)
				}
				fixture.Must(t, plain.Flush(ctx))
				if rebuilt {
					fixture.Must(t, plain.Admin().RebuildIndex(ctx))
				}
				e := &fixture.Embedder{}
				e.Set(fixture.AnswerBy(is))
				with := *o
				with.Embed, with.EmbedModel, with.EmbedBatch = e.Embed, "new", 2
				st := fixture.Open(t, dir, &with)
				for _, h := range []*varve.Store{st, plain, reader} {
					fixture.CheckVectors(t, h, "before", 0) // from here on each knows that none is missing
				}
				looks := 0
				look := func(what string) {
					t.Helper()
					for i, h := range []*varve.Store{st, plain, reader, fixture.Open(t, dir, &varve.Options{ReadOnly: true}),
						fixture.Open(t, dir, o)} {
						what := fmt.Sprintf("%s: handle %d", what, i)
						fixture.CheckVectors(t, h, what, n)
						hits, err := h.Search(ctx, varve.Query{Vector: is("text 5"), Limit: 1})
						if err != nil || len(hits) != 1 || hits[0].ID != "m5" {
							t.Fatalf("%s finds %v, %v", what, hits, err)
						}
					}
				}
				_, err := st.Vectors().Reembed(ctx, varve.ReembedOptions{Progress: func(r varve.ReembedReport) {
					if !st.Admin().Stats().Switching || r.Written == n {
						return
					}
					looks++
					look(fmt.Sprint(r.Written, " are written"))
					fixture.Must(t, plain.Flush(ctx))
					look(fmt.Sprint(r.Written, " are written, flushed"))
				}})
				fixture.Must(t, err)
				if looks == 0 {
					t.Fatal("the case is too weak: nobody looked amid the change")
				}
				look("done")
				fixture.Sound(t, dir)
			})
		}
	}
}

// Vectors that searches have written during a change of the model are removed with their memories, even
// if the index was last written before the change, when there were none.
func TestReembedOfNoVectorsThenEmptied(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	o := storetest.In(&varve.Options{NoBackground: true}, storetest.Environment{System: vfs.System{SmallVectors: 1}})
	plain := fixture.Open(t, dir, o)
	for i := range 4 {
		_, err := plain.Put(ctx, varve.Memory{ID: fmt.Sprint("m", i), Content: fmt.Sprint("text ", i)})
		fixture.Must(t, err)
	}
	fixture.Must(t, plain.Flush(ctx))
	e := &fixture.Embedder{}
	e.Set(fixture.AnswerBy(fixture.ModelOf("new", 4)))
	with := *o
	with.Embed, with.EmbedModel, with.EmbedBatch = e.Embed, "new", 2
	st := fixture.Open(t, dir, &with)
	_, err := st.Vectors().Reembed(ctx, varve.ReembedOptions{Progress: func(r varve.ReembedReport) {
		if r.Written == 2 {
			fixture.CheckVectors(t, plain, "amid the change", 4)
		}
	}})
	fixture.Must(t, err)
	if len(vectorFiles(t, dir)) == 0 {
		t.Fatal("the case is too weak: no vector was written")
	}
	for i := range 4 {
		fixture.Must(t, plain.Delete(ctx, fmt.Sprint("m", i)))
	}
	fixture.Must(t, plain.Flush(ctx))
	for i, h := range []*varve.Store{plain, st, fixture.Open(t, dir, &varve.Options{ReadOnly: true}),
		fixture.Open(t, dir, o)} {
		fixture.CheckVectors(t, h, fmt.Sprint("emptied: handle ", i), 0)
	}
	fixture.Sound(t, dir)
}
