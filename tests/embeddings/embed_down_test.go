package embeddings

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/vector/embed"
)

// moved is a clock that a test moves.
type moved struct{ atomic.Int64 }

func (m *moved) now() time.Time { return time.Unix(1_800_000_000, 0).Add(time.Duration(m.Load())) }

// hanging is a service over HTTP that hangs or fails until it is repaired.
type hanging struct {
	*httptest.Server
	requests atomic.Int64
	mended   atomic.Bool
	hang     bool
	release  chan bool
}

func newHanging(t *testing.T, hang bool) (*hanging, func(context.Context, []string) ([][]float32, error)) {
	h := &hanging{hang: hang, release: make(chan bool)}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			return // the caller has gone
		}
		switch {
		case h.mended.Load():
		case h.hang:
			<-h.release
			return
		default:
			http.Error(w, "starting", http.StatusServiceUnavailable)
			return
		}
		var data []map[string]any
		for i, text := range q.Input {
			data = append(data, map[string]any{"index": i, "embedding": fixture.EmbeddingOf(text)})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
	}))
	t.Cleanup(func() { close(h.release); h.Close() })
	e, err := embed.New(embed.Options{URL: h.URL, Model: "m", Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	return h, func(ctx context.Context, texts []string) ([][]float32, error) {
		h.requests.Add(1) // one may be cut off before the service has it
		return e.Embed(ctx, texts)
	}
}

// A write waits for an embedder that hangs or fails, but not at every call; memories that it left
// without a vector are embedded when the embedder works again.
func TestEmbedderDown(t *testing.T) {
	t.Parallel()
	for _, hang := range []bool{true, false} {
		t.Run(fmt.Sprint("hang ", hang), func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			h, call := newHanging(t, hang)
			var c moved
			var mu sync.Mutex
			var events []varve.EventKind
			st := fixture.Open(t, t.TempDir(), &varve.Options{
				Embed: call, NoBackground: true, Clock: c.now, EmbedTimeout: 50 * time.Millisecond,
				Listener: func(e varve.Event) {
					mu.Lock()
					defer mu.Unlock()
					if e.Kind == varve.EventEmbedDown || e.Kind == varve.EventEmbedWorks {
						events = append(events, e.Kind)
					}
					if e.Kind == varve.EventEmbedDown && (e.Err == nil || e.Count != 3 || e.Took != 5*time.Second) {
						t.Errorf("%+v", e)
					}
				},
			})
			if s := st.Health(ctx).Embedder.State; s != varve.EmbedderUnknown {
				t.Error(s)
			}
			for i := range 10 {
				m, err := st.Put(ctx, varve.Memory{ID: fmt.Sprint("m", i), Content: fmt.Sprint("text ", i)})
				if err != nil || len(m.Embedding) != 0 {
					t.Fatal(m.Embedding, err)
				}
			}
			if n := h.requests.Load(); n != 3 {
				t.Errorf("the embedder was asked %d times, want 3", n)
			}
			health := st.Health(ctx)
			if e := health.Embedder; e.State != varve.EmbedderDown || e.Failures != 3 || e.Err == nil ||
				!e.Next.Equal(c.now().Add(5*time.Second)) || !e.Since.Equal(c.now()) {
				t.Errorf("%+v", e)
			}
			var down *varve.EmbedderError
			if health.OK || health.Pending != 10 || len(health.Problems) != 1 ||
				!errors.Is(health.Problems[0], varve.ErrEmbedderDown) || !errors.As(health.Problems[0], &down) ||
				down.Failures != 3 {
				t.Errorf("%+v", health)
			}
			if _, err := st.Vectors().Embed(ctx, []string{"a query"}); !errors.Is(err,
				varve.ErrEmbedderDown) || h.requests.Load() != 3 {
				t.Error(err)
			}
			if hits, err := st.Search(ctx, varve.Query{Text: "text", Limit: 20}); err != nil || len(hits) != 10 {
				t.Error(len(hits), err)
			}
			c.Add(int64(5 * time.Second))
			if _, err := st.Put(ctx, varve.Memory{ID: "probe", Content: "probe"}); err != nil || h.requests.Load() != 4 {
				t.Error(err, h.requests.Load())
			}
			c.Add(int64(5 * time.Second))
			if _, err := st.Put(ctx, varve.Memory{ID: "doubled", Content: "doubled"}); err != nil || h.requests.Load() != 4 {
				t.Error(err, h.requests.Load())
			}
			h.mended.Store(true)
			storetest.Inner(st).Embedding.Tune().Timeout = time.Minute // a loaded machine may be slow
			c.Add(int64(5 * time.Second))
			if v, err := st.Vectors().Embed(ctx, []string{"a query"}); err != nil || !slices.Equal(v[0],
				fixture.EmbeddingOf("a query")) {
				t.Error(v, err)
			}
			if m, err := st.Put(ctx, varve.Memory{ID: "works", Content: "works"}); err != nil || !slices.Equal(m.Embedding,
				fixture.EmbeddingOf("works")) {
				t.Error(m.Embedding, err)
			}
			if n, err := st.Vectors().EmbedPending(ctx); err != nil || n != 12 {
				t.Error(n, err)
			}
			if e := st.Health(ctx).Embedder; e.State != varve.EmbedderWorks || e.Failures != 0 || e.Err != nil {
				t.Errorf("%+v", e)
			}
			mu.Lock()
			defer mu.Unlock()
			if want := []varve.EventKind{varve.EventEmbedDown, varve.EventEmbedWorks}; !slices.Equal(events, want) {
				t.Errorf("%q, want %q", events, want)
			}
		})
	}
}

// The background queue waits until the embedder may be asked, and asks it for a plain text first: a text
// that it always refuses does not keep the embedder down.
func TestEmbedderDownInTheBackground(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var c moved
	e := &fixture.Embedder{}
	refuse := func(texts []string) ([][]float32, error) {
		if slices.Contains(texts, "never") {
			return nil, errors.New("not this text")
		}
		return nil, nil
	}
	broken := func([]string) ([][]float32, error) { return nil, errors.New("no service") }
	waits := make(chan time.Duration)
	st := fixture.Open(t, t.TempDir(), storetest.In(&varve.Options{Embed: e.Embed, Clock: c.now},
		storetest.Environment{System: vfs.System{Sleep: func(ctx context.Context, d time.Duration) error {
			if d < time.Second {
				return nil
			}
			select {
			case waits <- d: // the time passes when the test receives this
				c.Add(int64(d))
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}}}))
	e.Set(broken)
	for _, text := range []string{"never", "one", "two"} {
		if _, err := st.Put(ctx, varve.Memory{ID: text, Content: text}); err != nil {
			t.Fatal(err)
		}
	}
	var total time.Duration
	for total < 15*time.Second {
		total += <-waits
	}
	if s := st.Health(ctx).Embedder.State; s != varve.EmbedderDown && s != varve.EmbedderProbing {
		t.Error(s)
	}
	e.Set(refuse)
	stop := make(chan bool)
	defer close(stop)
	go func() {
		for {
			select {
			case <-waits:
			case <-stop:
				return
			}
		}
	}()
	for _, id := range []string{"one", "two"} {
		fixture.WaitFor(t, func() bool {
			m, err := st.Get(ctx, id)
			return err == nil && slices.Equal(m.Embedding, fixture.EmbeddingOf(m.Content))
		})
	}
	if m, err := st.Put(ctx, varve.Memory{ID: "new", Content: "new"}); err != nil || !slices.Equal(m.Embedding,
		fixture.EmbeddingOf("new")) {
		t.Error(m.Embedding, err)
	}
}

// Processes that use one service inform each other that it is down, outside of the store.
func TestEmbedderDownForOthers(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir, state := t.TempDir(), t.TempDir()
	h, call := newHanging(t, false)
	var c moved
	for i := range 4 {
		st, err := varve.Open(ctx, dir,
			&varve.Options{Embed: call, NoBackground: true, Clock: c.now, StateDir: state, EmbedService: "m at " + h.URL})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := st.Put(ctx, varve.Memory{ID: fmt.Sprint(i), Content: "x"}); err != nil {
			t.Error(err)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}
	if n := h.requests.Load(); n != 3 {
		t.Errorf("asked %d times, want 3", n)
	}
	if names, err := os.ReadDir(state); err != nil || len(names) != 1 {
		t.Error(names, err)
	}
	st := fixture.Open(t, dir, &varve.Options{Embed: call, NoBackground: true, Clock: c.now, StateDir: state,
		EmbedService: "m at " + h.URL})
	if e := st.Health(ctx).Embedder; e.State != varve.EmbedderDown || e.Failures != 3 {
		t.Errorf("%+v", e)
	}
	h.mended.Store(true)
	if n, err := st.Vectors().EmbedPending(ctx); err != nil || n != 4 { // tried at once for a user
		t.Error(n, err)
	}
	other := fixture.Open(t, dir, &varve.Options{Embed: call, NoBackground: true, Clock: c.now, StateDir: state,
		EmbedService: "m at " + h.URL})
	if e := other.Health(ctx).Embedder; e.State != varve.EmbedderUnknown {
		t.Errorf("%+v", e)
	}
}
