package embeddings

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/embedding"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
)

// An embedder whose vectors have another dimension than the store's, whether fixed before or by another
// process while the embedder is asked, prevents no memory from being stored. A vector that the caller
// provides is refused as always.
func TestEmbedderOfAnotherDimension(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, when := range []string{"before", "meanwhile"} {
		dir := t.TempDir()
		other := fixture.Open(t, dir, &varve.Options{NoBackground: true})
		decide := func() {
			if _, err := other.Put(ctx, varve.Memory{ID: "first", Embedding: []float32{1, 2}}); err != nil {
				t.Error(err)
			}
		}
		if when == "before" {
			decide()
		}
		e := &fixture.Embedder{}
		asked := 0
		e.Set(func([]string) ([][]float32, error) {
			if asked++; asked == 1 && when == "meanwhile" {
				decide()
			}
			return nil, nil
		})
		var failed []varve.Event
		st := fixture.Open(t, dir, &varve.Options{NoBackground: true, Embed: e.Embed, Listener: func(ev varve.Event) {
			if ev.Kind == varve.EventEmbedFailed {
				failed = append(failed, ev)
			}
		}})
		for i, text := range []string{"one", "two"} {
			m, err := st.Put(ctx, varve.Memory{ID: fmt.Sprint("m", i), Content: text})
			if err != nil || m.Embedding != nil {
				t.Fatal(when, m.Embedding, err)
			}
		}
		if len(failed) != 2 || !errors.Is(failed[0].Err, varve.ErrDimension) ||
			!errors.Is(failed[1].Err, varve.ErrDimension) {
			t.Error(when, failed)
		}
		if h := st.Health(ctx); h.OK || h.Pending != 2 {
			t.Errorf("%s: %+v", when, h)
		}
		b := new(varve.Batch)
		b.Put(varve.Memory{ID: "x", Content: "three"})
		b.Put(varve.Memory{ID: "y", Content: "four", Embedding: []float32{1}})
		if err := st.Apply(ctx, b); !errors.Is(err, varve.ErrDimension) {
			t.Error(when, err)
		}
		if len(failed) != 3 {
			t.Error(when, failed) // an error about the text; the caller's vector is no failure of the embedder
		}
		// With the right model it continues.
		e.Set(func(texts []string) ([][]float32, error) {
			return slices.Repeat([][]float32{{3, 4}}, len(texts)), nil
		})
		if n, err := st.Vectors().EmbedPending(ctx); err != nil || n != 2 {
			t.Error(when, n, err)
		}
		if h := st.Health(ctx); !h.OK || h.Pending != 0 {
			t.Errorf("%s: %+v", when, h)
		}
	}
}

// The slices that an embedder returns belong to it: it may write the next vector there.
func TestEmbedderUsesItsMemoryAgain(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	mine := make([]float32, 3)
	st := fixture.Open(t, t.TempDir(), &varve.Options{NoBackground: true, EmbedBatch: 1,
		Embed: func(_ context.Context, texts []string) ([][]float32, error) {
			copy(mine, fixture.EmbeddingOf(texts[0]))
			return [][]float32{mine}, nil
		}})
	b := new(varve.Batch)
	for _, text := range []string{"one", "three"} {
		b.Put(varve.Memory{ID: text, Content: text})
	}
	if err := st.Apply(ctx, b); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one", "three"} {
		if m, err := st.Get(ctx, text); err != nil || !slices.Equal(m.Embedding, fixture.EmbeddingOf(text)) {
			t.Error(text, m.Embedding, err)
		}
	}
}

// A batch of the embedder may be more than fits in a commit: then it is written in several.
func TestEmbedMoreThanACommit(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	e := &fixture.Embedder{}
	down := func([]string) ([][]float32, error) { return nil, errors.New("down") }
	e.Set(down)
	st := fixture.Open(t, t.TempDir(), &varve.Options{NoBackground: true, Embed: e.Embed, EmbedModel: "newer",
		EmbedBatch: 64, SegmentSize: 64 << 10})
	for i := range 70 {
		if _, err := st.Put(ctx,
			varve.Memory{ID: fmt.Sprintf("m%02d", i), Content: fmt.Sprint("text ", i, strings.Repeat("e", 2000))}); err != nil {
			t.Fatal(err)
		}
	}
	e.Set(nil)
	if n, err := st.Vectors().EmbedPending(ctx); err != nil || n != 70 {
		t.Fatal(n, err)
	}
	e.Set(newer)
	changed := false
	r, err := st.Vectors().Reembed(ctx, varve.ReembedOptions{Progress: func(r varve.ReembedReport) {
		if r.Computed == 70 && !changed {
			changed = true
			if _, err := st.Put(ctx, varve.Memory{ID: "m50", Content: "another", Embedding: []float32{1, 1, 1}}); err != nil {
				t.Error(err)
			}
		}
	}})
	if err != nil || r.Written != 70 || r.Changed != 1 {
		t.Fatal(r, err)
	}
	checkReembedded(t, st)
}

// A memory for which the queue has no room is found by the scan, even if the scan was already past it.
func TestEmbedQueueFull(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	e := &fixture.Embedder{}
	st := fixture.Open(t, t.TempDir(), &varve.Options{NoBackground: true, Embed: e.Embed})
	if err := storetest.Inner(st).Committer.Commit(ctx,
		[]commit.Op{{ID: "a", Memory: &varve.Memory{ID: "a", Content: "text"}}}, nil, 0); err != nil {
		t.Fatal(err)
	}
	storetest.Inner(st).Embedding.Scan, storetest.Inner(st).Embedding.After = true, "m"
	for i := range embedding.MostQueued {
		storetest.Inner(st).Embedding.EmbedLater(fmt.Sprint("x", i))
	}
	storetest.Inner(st).Embedding.EmbedLater("a")
	for {
		ids, err := storetest.Inner(st).Embedding.NextQueued(ctx, 100)
		if err != nil || len(ids) == 0 {
			t.Fatal("it is forgotten", err)
		}
		if slices.Contains(ids, "a") {
			break
		}
		storetest.Inner(st).Embedding.Dequeue(ids, false)
	}
	if storetest.Inner(st).Embedding.Dequeue([]string{"a"}, false); storetest.Inner(st).Embedding.Scan ||
		storetest.Inner(st).Embedding.Again {
		t.Error("it does not come to an end")
	}
}

// The dimension of a re-embedding is the store's, not that of the first memory, which may have been
// edited by hand.
func TestReembedBesideAMisfit(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	st, _ := reembedStore(t, t.TempDir())
	if err := st.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(storetest.Inner(st).Engine.Env().Dir, "memories", "m0.json")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	longer := strings.Replace(string(b), `"embedding": [`, `"embedding": [ 9,`, 1)
	if err := os.WriteFile(path, []byte(longer), 0o600); err != nil || longer == string(b) {
		t.Fatal(err, longer)
	}
	storetest.Inner(st).Engine.Cache().InvalidateAll()
	if m, err := st.Get(ctx, "m0"); err != nil || len(m.Embedding) != 4 {
		t.Fatal(m.Embedding, err)
	}
	if r, err := st.Vectors().Reembed(ctx, varve.ReembedOptions{}); err != nil || r.Written != 10 {
		t.Fatal(r, err)
	}
	checkReembedded(t, st)
}
