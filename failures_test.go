package varve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// 28: each write reads and writes everything: 1205 a second with 100 memories, 75 with
// 2,000. What a put and a delete write here does not grow with the store; nor do they
// read it.
func TestFailures28(t *testing.T) {
	ctx := context.Background()
	var written, ops int64
	fsys := wrap.New(vfs.OS(), func(op *wrap.Op, call func() error) error {
		if ops++; op.Kind == wrap.Write {
			written += int64(op.Size)
		}
		return call()
	})
	st := openTest(t, t.TempDir(), &Options{NoBackground: true, CacheBytes: -1, System: &vfs.System{FS: fsys, Inline: true}})
	limitTo(t, st, func(c *Config) { c.MaxMemories, c.MaxBytes = 1_000_000, 1<<40 })
	n := 0
	fill := func(to int) {
		for ; n < to; n++ {
			if _, err := st.Put(ctx, Memory{ID: fmt.Sprintf("m%06d", n), Content: "x", Metadata: inSession(fmt.Sprint("s", n%10))}); err != nil {
				t.Fatal(err)
			}
		}
		if err := st.Compact(ctx); err != nil {
			t.Fatal(err)
		}
	}
	cost := func() (int64, int64) {
		written, ops = 0, 0
		for i := range 100 {
			if _, err := st.Put(ctx, Memory{ID: fmt.Sprintf("p%06d", n+i), Content: "x", Metadata: inSession("s1")}); err != nil {
				t.Fatal(err)
			}
			if err := st.Delete(ctx, fmt.Sprintf("m%06d", i)); err != nil {
				t.Fatal(err)
			}
			if _, err := st.Count(ctx); err != nil {
				t.Fatal(err)
			}
		}
		return written, ops
	}
	fill(200)
	w1, o1 := cost()
	fill(4000)
	for i := range 100 { // those that cost has deleted
		if _, err := st.Put(ctx, Memory{ID: fmt.Sprintf("m%06d", i), Content: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Compact(ctx); err != nil {
		t.Fatal(err)
	}
	w2, o2 := cost()
	if w2 > w1+w1/4 || o2 > o1+o1/4 {
		t.Errorf("a hundred puts and deletes write %d bytes in %d operations among 200 memories, %d in %d among 4,000", w1, o1, w2, o2)
	}
}

// 29: an empty or partial file: the session is lost, and then the file overwritten.
func TestFailures29(t *testing.T) {
	ctx := context.Background()
	for _, part := range []float64{0, 0.5, 0.99} {
		for _, reopen := range []bool{false, true} {
			t.Run(fmt.Sprint(part, reopen), func(t *testing.T) {
				dir := t.TempDir()
				st, err := Open(ctx, dir, &Options{NoBackground: true, CacheBytes: -1})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := st.Put(ctx, Memory{ID: "a", Content: "first", Metadata: inSession("s")}); err != nil {
					t.Fatal(err)
				}
				if err := st.Compact(ctx); err != nil {
					t.Fatal(err)
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
					st = openTest(t, dir, &Options{NoBackground: true, CacheBytes: -1})
				} else {
					t.Cleanup(func() {
						if err := st.Close(); err != nil {
							t.Error(err)
						}
					})
				}
				if s, err := st.Session(ctx, "s"); err != nil || s.Memories != 1 {
					t.Errorf("the session is %+v, %v", s, err)
				}
				if _, err := st.Put(ctx, Memory{ID: "a", Content: "theirs"}, InSession("t")); !errors.Is(err, ErrSession) {
					t.Errorf("another session takes it: %v", err)
				}
				if m, err := st.Get(ctx, "a"); err == nil && (m.Session() != "s" || m.Content != "first") {
					t.Errorf("read as %+v", m)
				}
				if m, err := st.Put(ctx, Memory{ID: "a", Content: "second"}, InSession("s")); err != nil || m.Session() != "s" {
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

// 31: a value that contains the system's own marker text is cut at the marker.
func TestFailures31(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	st := openTest(t, dir, &Options{NoBackground: true, CacheBytes: -1})
	markers := []string{
		`"id":`, `{"id":"b","content":"c"}`, `,"session_id":"t"`, `,"session_id":"t"}`, `","session_id":"t`, `,"size":9,"mtime":1,"version":8`,
		`{"deleted":true,"version":8}`, `,"members":["a"]`, "\n},\"by_session\": {\n", `,"sections":{`, "<<<<<<< HEAD\n=======\n>>>>>>> main\n", "}\n", "\x00", "\x01",
		`\u0000`, "s\x00t", "~", "--- MEMORY ---", "```", `"metadata": {"session_id": "t"}`, "varve_partial", `,"expires_at":"2001-01-01T00:00:00Z"`,
	}
	ids := make([]string, len(markers))
	for i, s := range markers {
		m, err := st.Put(ctx, Memory{ID: "id" + s, Content: "walrus " + s + " end", Metadata: map[string]any{
			"session_id": "s" + s, "category": s, "key": s, s: s, "list": []any{s, map[string]any{s: s}},
		}})
		if err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		ids[i] = m.ID
	}
	look := func(st *Store) {
		t.Helper()
		for i, s := range markers {
			m, err := st.Get(ctx, ids[i])
			if err != nil || m.Content != "walrus "+s+" end" || m.Session() != "s"+s || m.Category() != s || m.Key() != s || m.Metadata[s] == nil {
				t.Errorf("%q: %+v, %v", s, m, err)
			}
			one, err := st.Session(ctx, "s"+s)
			if err != nil || one.Memories != 1 {
				t.Errorf("%q: the session is %+v, %v", s, one, err)
			}
			if n, err := st.Count(ctx, InCategory(s), WithKey(s)); err != nil || n != 1 {
				t.Errorf("%q: %d with the category, %v", s, n, err)
			}
		}
		if n := counted(t, st); n != int64(len(markers)) {
			t.Errorf("%d are there", n)
		}
		hits, err := st.Search(ctx, Query{Text: "walrus", Limit: 1000})
		if err != nil || len(hits) != len(markers) {
			t.Errorf("%d are found, %v", len(hits), err)
		}
	}
	look(st)
	if err := st.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	look(st)
	if err := st.Compact(ctx); err != nil {
		t.Fatal(err)
	}
	if err := st.RebuildIndex(ctx); err != nil {
		t.Fatal(err)
	}
	look(st)
	look(openTest(t, dir, &Options{ReadOnly: true}))
	for f, err := range st.Verify(ctx, VerifyOptions{}) {
		t.Errorf("verify: %+v, %v", f, err)
	}
}

// 32: deleting takes the lock and then saves the index, which takes it again.
func TestFailures32(t *testing.T) {
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
	defer stop()
	dir := t.TempDir()
	stores := []*Store{openTest(t, dir, nil), openTest(t, dir, nil)}
	one := 1
	limitTo(t, stores[0], func(c *Config) { c.FlushThreshold, c.MaxMemories, c.AtLimit = &one, 30, AtLimitEvictOldest })
	stores[1].rereadConfig()
	var wg sync.WaitGroup
	for g := range 6 {
		st := stores[g%2]
		wg.Go(func() {
			for i := range 30 {
				id, s := fmt.Sprint(g, "-", i), fmt.Sprint("s", i%3)
				_, err := st.Put(ctx, Memory{ID: id, Content: strings.Repeat("x", 100)}, InSession(s))
				if err == nil {
					_, err = st.Assemblies().Put(ctx, Assembly{ID: fmt.Sprint("a", g), MemoryIDs: []string{id}}, AllowMissing())
				}
				switch {
				case err != nil:
				case i%3 == 0:
					err = st.Delete(ctx, id, InSession(s))
				case i%3 == 1:
					err = st.Flush(ctx)
				case i%10 == 2:
					_, err = st.DeleteSession(ctx, s)
				default:
					err = st.Compact(ctx)
				}
				if err != nil && !errors.Is(err, ErrNotFound) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		t.Fatal("they wait for each other")
	}
}
