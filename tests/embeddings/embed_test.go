package embeddings

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/memstore"
)

func TestEmbedAtPut(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, inline := range []bool{false, true} {
		e := &fixture.Embedder{}
		st := fixture.Open(t, t.TempDir(), storetest.In(&varve.Options{NoBackground: true, Embed: e.Embed, EmbedBatch: 2},
			storetest.Environment{System: vfs.System{Inline: inline}}))
		check := func(what, id string, want []float32, calls ...string) {
			t.Helper()
			m, err := st.Get(ctx, id)
			if err != nil || !slices.Equal(m.Embedding, want) {
				t.Errorf("%s: %q has %v, want %v, %v", what, m.Content, m.Embedding, want, err)
			}
			if got := e.Asked(); !slices.Equal(got, calls) {
				t.Errorf("%s: asked for %q, want %q", what, got, calls)
			}
		}
		put := func(m varve.Memory, options ...varve.PutOption) varve.Memory {
			t.Helper()
			m, err := st.Put(ctx, m, options...)
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		m := put(varve.Memory{ID: "a", Content: "one"})
		check("new", "a", fixture.EmbeddingOf("one"), "one")
		m.QuickRecalScore = 3
		m = put(m)
		check("something else changed", "a", fixture.EmbeddingOf("one"))
		m.Content = "three"
		put(m)
		check("the content changed", "a", fixture.EmbeddingOf("three"), "three")
		m = put(varve.Memory{ID: "a", Content: "three", QuickRecalScore: 1})
		check("put anew with the same content", "a", fixture.EmbeddingOf("three"))
		put(varve.Memory{ID: "a", Content: "four"})
		check("put anew with another", "a", fixture.EmbeddingOf("four"), "four")
		put(varve.Memory{ID: "a", Content: "five", Embedding: []float32{7, 7, 7}})
		check("with a vector of its own", "a", []float32{7, 7, 7})
		m, err := st.Update(ctx, "a", func(m *varve.Memory) error { m.Embedding = nil; return nil })
		if err != nil || !slices.Equal(m.Embedding, fixture.EmbeddingOf("five")) {
			t.Error(m.Embedding, err)
		}
		check("taken out on purpose", "a", fixture.EmbeddingOf("five"), "five")
		put(varve.Memory{ID: "blank", Content: " \n"})
		check("nothing to embed", "blank", nil)
		if _, err := st.Put(ctx, varve.Memory{ID: "a", Content: "refused"}, varve.IfAbsent()); !errors.Is(err,
			varve.ErrConflict) {
			t.Error(err)
		}
		check("refused anyway", "a", fixture.EmbeddingOf("five"))
		_, err = st.Update(ctx, "a", func(m *varve.Memory) error {
			m.Content, m.HyperbolicEmbedding = "six", []float32{0.1, 0, 0}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		check("with what is derived", "a", fixture.EmbeddingOf("six"), "six")
		if m, _ = st.Get(ctx, "a"); !slices.Equal(m.HyperbolicEmbedding, memstore.Hyperbolic(fixture.EmbeddingOf("six"))) {
			t.Error(m.HyperbolicEmbedding)
		}
		b := new(varve.Batch)
		for _, text := range []string{"x", "ye", "x", "zee"} {
			b.Put(varve.Memory{ID: "b" + fmt.Sprint(b.Len()), Content: text})
		}
		if err := st.Apply(ctx, b); err != nil {
			t.Fatal(err)
		}
		check("in a batch", "b2", fixture.EmbeddingOf("x"), "x,ye", "zee")
		if _, err := st.PutAll(ctx,
			slices.Values([]varve.Memory{{Content: "p"}, {Content: "q"}, {Content: "r"}})); err != nil {
			t.Fatal(err)
		}
		check("put all", "b3", fixture.EmbeddingOf("zee"), "p,q", "r")
		p := st.PutAsync(varve.Memory{ID: "async", Content: "later"})
		if _, err := p.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		check("async", "async", fixture.EmbeddingOf("later"), "later")
	}
}

// A transaction whose function runs again does not request the same texts again.
func TestEmbedOnceInATransaction(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	e := &fixture.Embedder{}
	st := fixture.Open(t, t.TempDir(), &varve.Options{NoBackground: true, Embed: e.Embed})
	if _, err := st.Put(ctx, varve.Memory{ID: "read", Content: "0"}); err != nil {
		t.Fatal(err)
	}
	e.Asked()
	runs := 0
	err := st.Transact(ctx, func(tx *varve.Tx) error {
		if _, err := tx.Get("read"); err != nil {
			return err
		}
		if runs++; runs < 3 {
			if _, err := st.Put(ctx, varve.Memory{ID: "read", Content: "0", QuickRecalScore: float64(runs)}); err != nil {
				return err
			}
		}
		_, err := tx.Put(varve.Memory{ID: "written", Content: "same"})
		if err == nil {
			_, err = tx.Put(varve.Memory{ID: "other", Content: fmt.Sprint("run ", runs)})
		}
		return err
	})
	if err != nil || runs != 3 {
		t.Fatal(runs, err)
	}
	if got, want := e.Asked(), []string{"same,run 1", "run 2", "run 3"}; !slices.Equal(got, want) {
		t.Errorf("asked for %q, want %q", got, want)
	}
}

// Whatever the embedder does wrong, the memory is stored without a vector, which is visible; the
// background asks again, at growing intervals, until it has one.
func TestEmbedFails(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(texts []string) ([][]float32, error){
		"error":     func([]string) ([][]float32, error) { return nil, errors.New("no service") },
		"too few":   func([]string) ([][]float32, error) { return [][]float32{}, nil },
		"too many":  func([]string) ([][]float32, error) { return [][]float32{{1, 2, 3}, {1, 2, 3}}, nil },
		"dimension": func([]string) ([][]float32, error) { return [][]float32{{1, 2}}, nil },
		"empty":     func([]string) ([][]float32, error) { return [][]float32{{}}, nil },
		"NaN":       func([]string) ([][]float32, error) { return [][]float32{{1, float32(math.NaN()), 1}}, nil },
		"infinity":  func([]string) ([][]float32, error) { return [][]float32{{1, float32(math.Inf(1)), 1}}, nil },
		"zeros":     func([]string) ([][]float32, error) { return [][]float32{{0, 0, 0}}, nil },
		"panic":     func([]string) ([][]float32, error) { panic("oh") },
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			e := &fixture.Embedder{}
			waits, wake := make(chan time.Duration), make(chan bool)
			var mu sync.Mutex
			var events []varve.Event
			st := fixture.Open(t, t.TempDir(), storetest.In(&varve.Options{
				Embed: e.Embed, Listener: func(ev varve.Event) {
					mu.Lock()
					defer mu.Unlock()
					if ev.Kind == varve.EventEmbedFailed || ev.Kind == varve.EventEmbedWorks {
						events = append(events, ev)
					}
				},
			}, storetest.Environment{System: vfs.System{Sleep: func(ctx context.Context, d time.Duration) error {
				if d < time.Second {
					return nil
				}
				if d == 3*time.Second { // the sections of notes, of which there are none
					<-ctx.Done()
					return ctx.Err()
				}
				select {
				case waits <- d:
				case <-ctx.Done():
					return ctx.Err()
				}
				select {
				case <-wake:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			}}}))
			if _, err := st.Put(ctx, varve.Memory{ID: "first", Content: "fine"}); err != nil {
				t.Fatal(err)
			}
			e.Set(fail)
			m, err := st.Put(ctx, varve.Memory{ID: "a", Content: "text"})
			if err != nil || len(m.Embedding) != 0 {
				t.Fatal(m.Embedding, err)
			}
			for _, want := range []time.Duration{1, 2, 4} {
				if d := <-waits; d != want*time.Second {
					t.Errorf("waits %s, want %d s", d, want)
				}
				if want < 4 {
					wake <- true
				}
			}
			if h := st.Health(ctx); h.OK || !h.Writable || h.Pending != 1 || len(h.Problems) != 1 {
				t.Errorf("%+v", h)
			}
			if _, err := st.Put(ctx,
				varve.Memory{ID: "first", Content: "changed", Embedding: fixture.EmbeddingOf("fine")}); err != nil {
				t.Fatal(err)
			}
			if m, err := st.Get(ctx, "first"); err != nil || len(m.Embedding) != 0 {
				t.Errorf("another text's vector stayed: %v, %v", m.Embedding, err)
			}
			e.Set(nil)
			// A successful call wakes those that wait.
			if _, err := st.Put(ctx, varve.Memory{ID: "b", Content: "works again"}); err != nil {
				t.Fatal(err)
			}
			for _, id := range []string{"a", "first"} {
				fixture.WaitFor(t, func() bool {
					m, err := st.Get(ctx, id)
					return err == nil && slices.Equal(m.Embedding, fixture.EmbeddingOf(m.Content))
				})
			}
			fixture.WaitFor(t, func() bool { h := st.Health(ctx); return h.OK && h.Pending == 0 })
			mu.Lock()
			defer mu.Unlock()
			if len(events) < 2 || events[0].Kind != varve.EventEmbedFailed || events[0].Err == nil ||
				events[len(events)-1].Kind != varve.EventEmbedWorks {
				t.Errorf("%+v", events)
			}
		})
	}
}

// If ctx ends while the embedder is asked, the write ends; nothing is stored.
func TestEmbedCanceled(t *testing.T) {
	t.Parallel()
	st := fixture.Open(t, t.TempDir(), &varve.Options{NoBackground: true})
	hang := make(chan bool)
	t.Cleanup(func() { close(hang) })
	ctx, cancel := context.WithCancel(context.Background())
	storetest.Inner(st).Embedding.Tune().Call = func(context.Context, []string) ([][]float32, error) { // deaf
		cancel()
		<-hang
		return nil, errors.New("late")
	}
	if _, err := st.Put(ctx, varve.Memory{ID: "a", Content: "x"}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := st.Get(context.Background(), "a"); !errors.Is(err, varve.ErrNotFound) {
		t.Error(err)
	}
	if h := st.Health(context.Background()); !h.OK || h.Pending != 0 {
		t.Errorf("%+v", h)
	}
}

// Close does not wait for an embedder: a memory that is being put is stored without a vector, and the
// next open requests one.
func TestCloseWithAHangingEmbedder(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	hang, called := make(chan bool), make(chan bool, 10)
	t.Cleanup(func() { close(hang) })
	st, err := varve.Open(ctx, dir, &varve.Options{Embed: func(context.Context, []string) ([][]float32, error) {
		called <- true
		<-hang
		return nil, errors.New("late")
	}})
	if err != nil {
		t.Fatal(err)
	}
	p := st.PutAsync(varve.Memory{ID: "async", Content: "x"})
	done := make(chan error)
	go func() {
		_, err := st.Put(ctx, varve.Memory{ID: "put", Content: "ye"})
		done <- err
	}()
	<-called
	<-called
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if m, err := p.Wait(ctx); err != nil || len(m.Embedding) > 0 {
		t.Error(m, err)
	}
	e := &fixture.Embedder{}
	st = fixture.Open(t, dir, &varve.Options{Embed: e.Embed})
	for _, id := range []string{"async", "put"} {
		fixture.WaitFor(t, func() bool {
			m, err := st.Get(ctx, id)
			return err == nil && slices.Equal(m.Embedding, fixture.EmbeddingOf(m.Content))
		})
	}
}

// Memories without a vector get one when the store is opened: in the background, or on request. A text
// that the embedder refuses does not delay the others, and a vector that was set meanwhile stays.
func TestEmbedAtOpen(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, background := range []bool{true, false} {
		dir := t.TempDir()
		st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
		var all []varve.Memory
		for i := range 2500 {
			m := varve.Memory{ID: fmt.Sprintf("m%04d", i), Content: fmt.Sprint("text ", i)}
			switch i {
			case 7:
				m.Content = ""
			case 8:
				m.Embedding = []float32{8, 8, 8}
			}
			all = append(all, m)
		}
		if _, err := st.PutAll(ctx, slices.Values(all)); err != nil {
			t.Fatal(err)
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		e := &fixture.Embedder{}
		var set sync.Once
		var reopened *varve.Store
		ready := make(chan bool)
		e.Set(func(texts []string) ([][]float32, error) {
			<-ready
			if slices.Contains(texts, "text 9") && background {
				return nil, errors.New("not this one")
			}
			set.Do(func() {
				if _, err := reopened.Put(ctx,
					varve.Memory{ID: "m0003", Content: "text 3", Embedding: []float32{3, 3, 3}}); err != nil {
					t.Error(err)
				}
			})
			return nil, nil
		})
		reopened = fixture.Open(t, dir, storetest.In(&varve.Options{Embed: e.Embed, NoBackground: !background},
			storetest.Environment{System: vfs.System{Sleep: func(ctx context.Context,
				_ time.Duration) error {
				return ctx.Err()
			}}}))
		close(ready)
		st = reopened
		if !background {
			n, err := st.Vectors().EmbedPending(ctx)
			if err != nil || n != 2497 { // the empty one, and two with their own
				t.Fatal(n, err)
			}
		}
		want := map[string][]float32{"m0007": nil, "m0008": {8, 8, 8}, "m0003": {3, 3, 3}}
		if background {
			want["m0009"] = nil
		}
		for _, m := range all {
			v, ok := want[m.ID]
			if !ok {
				v = fixture.EmbeddingOf(m.Content)
			}
			fixture.WaitFor(t, func() bool { m, err := st.Get(ctx, m.ID); return err == nil && slices.Equal(m.Embedding, v) })
		}
		if background {
			fixture.WaitFor(t, func() bool { h := st.Health(ctx); return h.Pending == 1 && !h.OK })
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// If an embedder has another dimension than the store, the memory is stored without a vector, and the
// error names both dimensions.
func TestEmbedAnotherDimension(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	first := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	if _, err := first.Put(ctx, varve.Memory{ID: "first", Content: "x", Embedding: []float32{1, 2, 3}}); err != nil {
		t.Fatal(err)
	}
	var failed error
	st := fixture.Open(t, dir, &varve.Options{
		NoBackground: true, Listener: func(e varve.Event) {
			if e.Kind == varve.EventEmbedFailed {
				failed = e.Err
			}
		},
		Embed: func(_ context.Context, texts []string) ([][]float32, error) {
			list := make([][]float32, len(texts))
			for i := range list {
				list[i] = []float32{1, 2}
			}
			return list, nil
		},
	})
	m, err := st.Put(ctx, varve.Memory{ID: "second", Content: "y"})
	if err != nil || m.Embedding != nil || !errors.Is(failed, varve.ErrDimension) {
		t.Fatal(m, err, failed)
	}
}

// The model's name is stored with the vectors, also when a process without an embedder writes them
// again.
func TestEmbedModelIsRecorded(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	e := &fixture.Embedder{}
	for _, o := range []*varve.Options{
		{NoBackground: true, Embed: e.Embed, EmbedModel: "the-model"},
		{NoBackground: true},
	} {
		st := fixture.Open(t, dir, o)
		if _, err := st.Put(ctx, varve.Memory{Content: "x", Embedding: []float32{1, 2, 3}}); err != nil {
			t.Fatal(err)
		}
		if err := st.Admin().Compact(ctx); err != nil {
			t.Fatal(err)
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(dir, "vector_index", "mapping.json"))
		if err != nil || !strings.Contains(string(b), `"model":"the-model"`) {
			t.Errorf("%v\n%s", err, b)
		}
	}
}

// TestEmbedZerosAgain: an embedding of zeros, which an earlier version accepted from the embedder,
// counts as missing.
func TestEmbedZerosAgain(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	e := &fixture.Embedder{}
	dir := t.TempDir()
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true, Embed: e.Embed})
	b := new(varve.Batch)
	b.Put(varve.Memory{ID: "zeros", Content: "one"})
	b.Put(varve.Memory{ID: "has", Content: "two"})
	b.Put(varve.Memory{ID: "zeros too", Content: "three", Embedding: make([]float32, 3)})
	b.Put(varve.Memory{ID: "own", Content: "four", Embedding: []float32{0, 0, 1}})
	if err := st.Apply(ctx, b); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Put(ctx, varve.Memory{ID: "zeros", Content: "one", Embedding: make([]float32, 3)}); err != nil {
		t.Fatal(err)
	}
	for _, flushed := range []bool{false, true} {
		if flushed {
			if _, err := st.Put(ctx, varve.Memory{ID: "zeros", Content: "one", Embedding: make([]float32, 3)}); err != nil {
				t.Fatal(err)
			}
			if err := st.Flush(ctx); err != nil {
				t.Fatal(err)
			}
		}
		n, err := st.Vectors().EmbedPending(ctx)
		if want := int64(2); err != nil || n != want && !flushed || flushed && n != 1 {
			t.Errorf("flushed %v: %d, %v", flushed, n, err)
		}
		for id, content := range map[string]string{"zeros": "one", "has": "two", "zeros too": "three"} {
			if m, err := st.Get(ctx, id); err != nil || !slices.Equal(m.Embedding, fixture.EmbeddingOf(content)) {
				t.Errorf("flushed %v: %s has %v, %v", flushed, id, m.Embedding, err)
			}
		}
		if m, err := st.Get(ctx, "own"); err != nil || !slices.Equal(m.Embedding, []float32{0, 0, 1}) {
			t.Errorf("own has %v, %v", m.Embedding, err)
		}
	}
}
