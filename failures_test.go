package varve_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/wrap"
	"github.com/varve-db/varve/working"
)

// TestFailures28, row 28: each write reads and writes everything: 1205 a second with 100 memories, 75 with 2,000. What
// a put and a delete write here does not grow with the store. Nor do they read the store, which shows in the time of
// the fastest of many: the index is mapped, so reading it is no operation that could be counted.
func TestFailures28(t *testing.T) {
	proofs.OneGoroutine(t)
	ctx := context.Background()
	var written, ops int64
	fsys := wrap.New(vfs.OS(), func(op *wrap.Op, call func() error) error {
		// The log is extended ahead of its end in steps, which may fall anywhere.
		ahead := strings.HasSuffix(op.Path, ".wal") && op.Size >= 64<<10
		if ops++; op.Kind == wrap.Write && !ahead {
			written += int64(op.Size)
		}
		return call()
	})
	st := fixture.Open(t, t.TempDir(), storetest.In(&varve.Options{NoBackground: true, CacheBytes: -1},
		storetest.Environment{System: vfs.System{FS: fsys, Inline: true}}))
	fixture.LimitTo(t, st, func(c *varve.Config) { c.MaxMemories, c.MaxBytes = 1_000_000, 1<<40 })
	n := 0
	fill := func(to int) {
		var list []varve.Memory
		for ; n < to; n++ {
			list = append(list, varve.Memory{ID: fmt.Sprintf("m%06d", n), Content: "x",
				Metadata: fixture.InSession(fmt.Sprint("s", n%10))})
		}
		for i := range 100 { // those that cost has deleted
			list = append(list, varve.Memory{ID: fmt.Sprintf("m%06d", i), Content: "x"})
		}
		if _, err := st.PutAll(ctx, slices.Values(list)); err != nil {
			t.Fatal(err)
		}
		if err := st.Admin().Compact(ctx); err != nil {
			t.Fatal(err)
		}
	}
	type costs struct {
		written, ops int64
		fastest      map[string]time.Duration
	}
	cost := func() costs {
		written, ops = 0, 0
		fastest := map[string]time.Duration{}
		timed := func(what string, do func() error) {
			began := time.Now()
			if err := do(); err != nil {
				t.Fatal(what, err)
			}
			if took := time.Since(began); fastest[what] == 0 || took < fastest[what] {
				fastest[what] = took
			}
		}
		for i := range 100 {
			timed("put", func() error {
				_, err := st.Put(ctx, varve.Memory{ID: fmt.Sprintf("p%06d", n+i), Content: "x", Metadata: fixture.InSession("s1")})
				return err
			})
			timed("delete", func() error { return st.Delete(ctx, fmt.Sprintf("m%06d", i)) })
			timed("count", func() error { _, err := st.Count(ctx); return err })
		}
		return costs{written, ops, fastest}
	}
	const few, many = 200, 4000
	fill(few)
	a := cost()
	fill(many)
	b := cost()
	t.Logf("among %d memories %+v, among %d %+v", few, a, many, b)
	if b.written > a.written+a.written/4 || b.ops > a.ops+a.ops/4 {
		t.Errorf("a hundred puts and deletes write %d bytes in %d operations among %d memories, %d in %d among %d", a.written,
			a.ops, few, b.written, b.ops, many)
	}
	for what, took := range b.fastest { // 20 times as many memories
		if was := a.fastest[what]; took > 4*was+200*time.Microsecond {
			t.Errorf("the fastest %s took %s among %d memories, %s among %d", what, was, few, took, many)
		}
	}
}

// TestFailures29, row 29: an empty or partial file: the session is lost, and then the file overwritten.
func TestFailures29(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, part := range []float64{0, 0.5, 0.99} {
		for _, reopen := range []bool{false, true} {
			for _, released := range []bool{false, true} {
				t.Run(fmt.Sprint(part, reopen, released), func(t *testing.T) {
					dir := t.TempDir()
					o := storetest.In(&varve.Options{NoBackground: true, CacheBytes: -1, SegmentSize: 64 << 10},
						storetest.Environment{System: vfs.System{SpillBytes: 64 << 10, ArchiveBytes: -1}})
					st, err := varve.Open(ctx, dir, o)
					if err != nil {
						t.Fatal(err)
					}
					first, err := st.Put(ctx, varve.Memory{ID: "a", Content: "first", Metadata: fixture.InSession("s")})
					if err != nil {
						t.Fatal(err)
					}
					if err := st.Admin().Compact(ctx); err != nil {
						t.Fatal(err)
					}
					for i := 0; released; i++ { // only the index still has it
						if _, err := st.Put(ctx, varve.Memory{ID: "b", Content: strings.Repeat("x", 3000)}); err != nil {
							t.Fatal(err)
						}
						if _, err := storetest.Inner(st).Engine.Log().ReadAt(ctx, first.Version); errors.Is(err, varve.ErrTruncated) {
							break
						}
						if i%50 == 49 {
							if err := st.Admin().Compact(ctx); err != nil {
								t.Fatal(err)
							}
						}
						if i > 1000 {
							t.Fatal("the log does not let go")
						}
					}
					file := filepath.Join(dir, "memories", "a.json")
					whole, err := os.ReadFile(file)
					if err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(file, whole[:int(part*float64(len(whole)))], 0o600); err != nil {
						t.Fatal(err)
					}
					if reopen {
						if err := st.Close(); err != nil {
							t.Fatal(err)
						}
						st = fixture.Open(t, dir, o)
					} else {
						t.Cleanup(func() {
							if err := st.Close(); err != nil {
								t.Error(err)
							}
						})
					}
					if s, err := st.Sessions().Get(ctx, "s"); err != nil || s.Memories != 1 {
						t.Errorf("the session is %+v, %v", s, err)
					}
					if _, err := st.Put(ctx, varve.Memory{ID: "a", Content: "theirs"}, varve.InSession("t")); !errors.Is(err,
						varve.ErrSession) {
						t.Errorf("another session takes it: %v", err)
					}
					if m, err := st.Get(ctx, "a"); err == nil && (m.Session() != "s" || m.Content != "first") || errors.Is(err,
						varve.ErrNotFound) {
						t.Errorf("read as %+v, %v", m, err)
					}
					if m, err := st.Put(ctx, varve.Memory{ID: "a", Content: "second"},
						varve.InSession("s")); err != nil || m.Session() != "s" {
						t.Errorf("%+v, %v", m, err)
					}
					if err := st.Flush(ctx); err != nil {
						t.Fatal(err)
					}
					if m, err := st.Get(ctx, "a"); err != nil || m.Session() != "s" || m.Content != "second" {
						t.Errorf("%+v, %v", m, err)
					}
				})
			}
		}
	}
}

// TestFailures31, row 31: a value that contains the system's own marker text is cut at the marker.
func TestFailures31(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true, CacheBytes: -1})
	markers := []string{
		`"id":`, `{"id":"b","content":"c"}`, `,"session_id":"t"`, `,"session_id":"t"}`, `","session_id":"t`,
		`,"size":9,"mtime":1,"version":8`,
		`{"deleted":true,"version":8}`, `,"members":["a"]`, "\n},\"by_session\": {\n", `,"sections":{`,
		"<<<<<<< HEAD\n=======\n>>>>>>> main\n", "}\n", "\x00", "\x01",
		`\u0000`, "s\x00t", "~", "--- MEMORY ---", "```", `"metadata": {"session_id": "t"}`, "varve_partial",
		`,"expires_at":"2001-01-01T00:00:00Z"`,
	}
	ids := make([]string, len(markers))
	for i, s := range markers {
		m, err := st.Put(ctx, varve.Memory{ID: "id" + s, Content: "walrus " + s + " end", Metadata: map[string]any{
			"session_id": "s" + s, "category": s, "key": s, s: s, "list": []any{s, map[string]any{s: s}},
		}})
		if err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		ids[i] = m.ID
	}
	look := func(st *varve.Store) {
		t.Helper()
		for i, s := range markers {
			m, err := st.Get(ctx, ids[i])
			if err != nil || m.Content != "walrus "+s+" end" || m.Session() != "s"+s || m.Category() != s || m.Key() != s ||
				m.Metadata[s] == nil {
				t.Errorf("%q: %+v, %v", s, m, err)
			}
			one, err := st.Sessions().Get(ctx, "s"+s)
			if err != nil || one.Memories != 1 {
				t.Errorf("%q: the session is %+v, %v", s, one, err)
			}
			if n, err := st.Count(ctx, varve.InCategory(s), varve.WithKey(s)); err != nil || n != 1 {
				t.Errorf("%q: %d with the category, %v", s, n, err)
			}
		}
		if n := fixture.CheckCount(t, st); n != int64(len(markers)) {
			t.Errorf("%d are there", n)
		}
		hits, err := st.Search(ctx, varve.Query{Text: "walrus", Limit: 1000})
		if err != nil || len(hits) != len(markers) {
			t.Errorf("%d are found, %v", len(hits), err)
		}
	}
	look(st)
	if err := st.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	look(st)
	if err := st.Admin().Compact(ctx); err != nil {
		t.Fatal(err)
	}
	if err := st.Admin().RebuildIndex(ctx); err != nil {
		t.Fatal(err)
	}
	look(st)
	look(fixture.Open(t, dir, &varve.Options{ReadOnly: true}))
	for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
		t.Errorf("verify: %+v, %v", f, err)
	}
}

// TestFailures32, row 32: deleting takes the lock and then saves the index, which takes it again.
func TestFailures32(t *testing.T) {
	ctx := context.Background()
	// A goroutine that waits for itself never ends, whatever its context.
	watchdog := time.AfterFunc(2*time.Minute, func() {
		debug.SetTraceback("all")
		panic("they wait for each other")
	})
	defer watchdog.Stop()
	dir := t.TempDir()
	stores := []*varve.Store{fixture.Open(t, dir, nil), fixture.Open(t, dir, nil)}
	one := 1
	fixture.LimitTo(t, stores[0], func(c *varve.Config) {
		c.FlushThreshold, c.MaxMemories, c.AtLimit = &one, 30,
			varve.AtLimitEvictOldest
	})
	storetest.Inner(stores[1]).Engine.Settings().Reread()
	var wg sync.WaitGroup
	for g := range 6 {
		st := stores[g%2]
		wg.Go(func() {
			for i := range 30 {
				id, s := fmt.Sprint(g, "-", i), fmt.Sprint("s", i%3)
				_, err := st.Put(ctx, varve.Memory{ID: id, Content: strings.Repeat("x", 100)}, varve.InSession(s))
				if err == nil {
					_, err = st.Assemblies().Put(ctx, varve.Assembly{ID: fmt.Sprint("a", g), MemoryIDs: []string{id}},
						varve.AllowMissing())
				}
				switch {
				case err != nil:
				case i%3 == 0:
					err = st.Delete(ctx, id, varve.InSession(s))
				case i%3 == 1:
					err = st.Flush(ctx)
				case i%10 == 2:
					_, err = st.Sessions().Delete(ctx, s)
				default:
					err = st.Admin().Compact(ctx)
				}
				if err != nil && !errors.Is(err, varve.ErrNotFound) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// TestFailures44, row 44: NaN and Infinity written as JSON. Whatever the source of one (a caller, an embedder, an
// edited file), it is named, and no file of the store contains anything but JSON.
func TestFailures44(t *testing.T) {
	t.Parallel()
	ctx, dir := context.Background(), t.TempDir()
	nan, inf := math.NaN(), float32(math.Inf(1))
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true,
		Embed: func(_ context.Context, texts []string) ([][]float32, error) {
			list := make([][]float32, len(texts))
			for i, text := range texts {
				if list[i] = []float32{1, 2}; strings.Contains(text, "makes NaN") {
					list[i][1] = float32(nan)
				}
			}
			return list, nil
		}, EmbedModel: "m"})
	if _, err := st.Put(ctx, varve.Memory{ID: "good", Content: "x", Metadata: map[string]any{"f": 1.5}}); err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]varve.Memory{
		"embedding": {Embedding: []float32{1, inf}}, "hyperbolic": {HyperbolicEmbedding: []float32{inf}},
		"score":    {QuickRecalScore: nan},
		"metadata": {Metadata: map[string]any{"a": []any{nan}}},
	} {
		m.ID, m.Content = name, "x"
		_, err := st.Put(ctx, m)
		if f := (*varve.FieldError)(nil); !errors.As(err, &f) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := st.Get(ctx, name); !errors.Is(err, varve.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := st.Update(ctx, "good", func(m *varve.Memory) error { m.Metadata["f"] = nan; return nil }); !errors.Is(err,
		varve.ErrInvalid) {
		t.Errorf("update: %v", err)
	}
	if _, err := st.Put(ctx, varve.Memory{ID: "embedded", Content: "makes NaN"}); err != nil {
		t.Errorf("the text is stored whatever the embedder gives: %v", err)
	}
	if _, err := st.Assemblies().Put(ctx,
		varve.Assembly{ID: "g", MemoryIDs: []string{"good"}, EmotionProfile: map[string]any{"joy": nan}}); !errors.Is(err,
		varve.ErrInvalid) {
		t.Errorf("assembly: %v", err)
	}
	w, err := st.Working().Open(ctx, working.Scope{Session: "s"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Set(ctx, "k", nan); err == nil {
		t.Error("working memory takes NaN")
	}
	if err := st.Admin().Compact(ctx); err != nil {
		t.Fatal(err)
	}
	// Write by hand what Python's json module would write.
	if err := os.WriteFile(filepath.Join(dir, "memories", "by-hand.json"),
		[]byte(`{"id":"by-hand","content":"x","quickrecal_score":NaN}`), 0o600); err != nil {
		t.Fatal(err)
	}
	named := false
	for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
		named = named || err == nil && f.Path == "memories/by-hand.json"
	}
	if !named {
		t.Error("verify does not name the file")
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, pattern := range []string{"memories/*.json", "assemblies/*.json", "working/*.json", "*.json",
		"vector_index/*.json"} {
		files, _ := filepath.Glob(filepath.Join(dir, pattern))
		for _, name := range files {
			b, err := os.ReadFile(name)
			if n++; err != nil || !json.Valid(b) && filepath.Base(name) != "by-hand.json" {
				t.Errorf("%s is not JSON: %v %.200s", name, err, b)
			}
		}
	}
	if n < 5 {
		t.Errorf("only %d files", n)
	}
}
