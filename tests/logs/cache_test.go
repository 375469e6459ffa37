package logs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/wal"
)

// cacheFile returns the path of a memory's file.
func cacheFile(dir, id string) string { return filepath.Join(dir, "memories", id+".json") }

func contentOf(t *testing.T, st *varve.Store, id string) string {
	t.Helper()
	m, err := st.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return m.Content
}

// Memories that were written or read are in the cache, and stay there when the index is replaced.
func TestCacheStays(t *testing.T) {
	t.Parallel()
	st := fixture.Open(t, t.TempDir(), &varve.Options{NoBackground: true})
	load := func(id string) *byte {
		t.Helper()
		v, err := storetest.Inner(st).Engine.Load(t.Context(), storetest.Inner(st).Engine.Kinds().Memories, id)
		if err != nil {
			t.Fatal(err)
		}
		return &v.Doc[0]
	}
	put := func(id string) {
		t.Helper()
		if _, err := st.Put(t.Context(), varve.Memory{ID: id, Content: "walrus"}); err != nil {
			t.Fatal(err)
		}
	}
	put("read")
	storetest.Inner(st).Engine.Cache().InvalidateAll()
	put("written")
	is := map[string]*byte{"read": load("read"), "written": load("written")}
	for i := range 3 {
		put(fmt.Sprint("another", i))
		before := storetest.Inner(st).Engine.State().Swaps()
		if err := st.Admin().Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
		if storetest.Inner(st).Engine.State().Swaps() == before {
			t.Fatal("it has the same index")
		}
		for id, doc := range is {
			if load(id) != doc {
				t.Errorf("after %d new indexes, what was %s is no longer in the cache", i+1, id)
			}
		}
	}
}

// An edit by hand of a memory in the cache is seen by the first read after the flush, and by the first
// one after a new index.
func TestCacheEdited(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		swap bool // the index has it before the edit
		read bool // it is read between the flush and the edit, and another index follows
	}{{"of what the overlay has", false, false}, {"of what the index has", true, false},
		{"before another index", true, true}} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
			put := func(id string) {
				t.Helper()
				if _, err := st.Put(t.Context(), varve.Memory{ID: id, Content: "walrus"}); err != nil {
					t.Fatal(err)
				}
			}
			b := new(varve.Batch) // a small index is written in each round
			for i := range 2000 {
				b.Put(varve.Memory{ID: fmt.Sprint("many", i), Content: "x"})
			}
			if err := errors.Join(st.Apply(t.Context(), b), st.Admin().Compact(t.Context())); err != nil {
				t.Fatal(err)
			}
			put("a")
			contentOf(t, st, "a")
			if _,
				did := storetest.Inner(st).Flusher.FlushBackground(t.Context()); !did ||
				storetest.Inner(st).Engine.Log().Flushed() < storetest.Inner(st).Engine.Log().Applied() {
				t.Fatal("it was not flushed")
			}
			if at := storetest.Inner(st).Engine.State().From(); at == storetest.Inner(st).Engine.Log().Flushed() {
				t.Fatal("it is in the index")
			}
			if c.swap {
				if err := st.Admin().Compact(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if c.read {
				contentOf(t, st, "a")
			}
			text, err := os.ReadFile(cacheFile(dir, "a"))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(cacheFile(dir, "a"), bytes.Replace(text, []byte("walrus"), []byte("sea lion"), 1),
				0o600); err != nil {
				t.Fatal(err)
			}
			if c.read {
				put("b")
				if err := st.Admin().Compact(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if got := contentOf(t, st, "a"); got != "sea lion" {
				t.Errorf("read %q behind the edit", got)
			}
		})
	}
}

// A newer version from another process is seen once this process knows that it is durable, even if the
// index has removed both from the overlay, and also by a put that was in progress meanwhile: what it
// puts into the cache is valid from before it was appended.
func TestCacheOther(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dir := t.TempDir()
	one, two := fixture.Open(t, dir, &varve.Options{NoBackground: true}),
		fixture.Open(t, dir, &varve.Options{NoBackground: true})
	for i, swap := range []bool{false, true} {
		id := fmt.Sprint("k", i)
		before := storetest.Inner(one).Engine.State().Swaps()
		old, err := one.Put(ctx, varve.Memory{ID: id, Content: "old"})
		if err != nil {
			t.Fatal(err)
		}
		v, err := storetest.Inner(one).Engine.Find(ctx, storetest.Inner(one).Engine.Kinds().Memories, id, true)
		if err != nil {
			t.Fatal(err)
		}
		contentOf(t, one, id)
		if _, err := two.Put(ctx, varve.Memory{ID: id, Content: "new"}); err != nil {
			t.Fatal(err)
		}
		if swap {
			if err := two.Admin().Compact(ctx); err != nil {
				t.Fatal(err)
			}
			if err := storetest.Inner(one).Engine.CatchUp(ctx); err != nil {
				t.Fatal(err)
			}
			if storetest.Inner(one).Engine.State().Swaps() == before {
				t.Fatal("it has the same index")
			}
		}
		if got := contentOf(t, one, id); got != "new" {
			t.Errorf("read %q, not what the other process has put", got)
		}
		// With the mtime of the newer version's file: checking the file finds no difference.
		newer, err := storetest.Inner(one).Engine.Find(ctx, storetest.Inner(one).Engine.Kinds().Memories, id, true)
		if err != nil {
			t.Fatal(err)
		}
		engine.Written(storetest.Inner(one).Engine, &old, v.Doc,
			&wal.Entry{LSN: old.Version, Key: engine.MemoryKey(id), Time: time.UnixMicro(newer.Line.Mtime)}, before)
		if got := contentOf(t, one, id); got != "new" {
			t.Errorf("read %q, not what the other process has put, once the older put had ended", got)
		}
	}
}

// A cached memory has the times, the session and the number of the vector as they were written.
func TestCacheLine(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := fixture.ClockAt(time.Unix(1_700_000_000, 123_456_789))
	st := fixture.Open(t, t.TempDir(), &varve.Options{NoBackground: true, Clock: c.Now})
	end := c.Now().Add(time.Minute)
	first, err := st.Put(ctx,
		varve.Memory{ID: "a", Content: "x", Embedding: []float32{1, 2}, Metadata: map[string]any{"session_id": "s"},
			ExpiresAt: end})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		v, err := storetest.Inner(st).Engine.Load(ctx, storetest.Inner(st).Engine.Kinds().Memories, "a")
		if err != nil {
			t.Fatal(err)
		}
		is, err := storetest.Inner(st).Engine.Find(ctx, storetest.Inner(st).Engine.Kinds().Memories, "a", true)
		if err != nil {
			t.Fatal(err)
		}
		if !v.Line.CreatedAt.Equal(is.Line.CreatedAt) || !v.Line.UpdatedAt.Equal(is.Line.UpdatedAt) ||
			!v.Line.ExpiresAt.Equal(is.Line.ExpiresAt) || v.LSN != is.LSN ||
			v.Line.Size != is.Line.Size || v.Line.SessionID != is.Line.SessionID || v.Line.Mtime != is.Line.Mtime ||
			v.Line.VectorNumber() != is.Line.VectorNumber() || !bytes.Equal(v.Doc, is.Doc) {
			t.Errorf("cached %+v\nis %+v", v.Line, is.Line)
		}
		if v.Line.VectorNumber() != int64(first.Version) {
			t.Errorf("its vector is %d, not %d", v.Line.VectorNumber(), first.Version)
		}
		c.Add(time.Second)
		if _, err := st.Update(ctx, "a",
			func(m *varve.Memory) error { m.Content = fmt.Sprint("x", i); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	c.Add(time.Minute)
	if _, err := st.Get(ctx, "a"); !errors.Is(err, varve.ErrNotFound) {
		t.Errorf("what has expired is read from the cache: %v", err)
	}
}

// Large batches do not go into the cache, small ones do, and it stays within its bound.
func TestCacheBound(t *testing.T) {
	t.Parallel()
	const most = 256 << 10
	st := fixture.Open(t, t.TempDir(), &varve.Options{NoBackground: true, CacheBytes: most})
	batch := func(name string, n, size int) {
		t.Helper()
		b := new(varve.Batch)
		for i := range n {
			b.Put(varve.Memory{ID: fmt.Sprint(name, i), Content: strings.Repeat("x", size)})
		}
		if err := st.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	batch("many", 64, 10)
	if n := storetest.Inner(st).Engine.Cache().EstimatedSize(); n != 0 {
		t.Errorf("%d memories of a large batch are in the cache", n)
	}
	batch("large", 1, most/3)
	if n := storetest.Inner(st).Engine.Cache().EstimatedSize(); n != 0 {
		t.Errorf("%d memories above a quarter of the cache are in it", n)
	}
	batch("few", 3, 10)
	if n := storetest.Inner(st).Engine.Cache().EstimatedSize(); n != 3 {
		t.Errorf("%d of 3 memories of a small batch are in the cache", n)
	}
	for i := range 100 {
		batch(fmt.Sprint(i, "-"), 10, 1000)
		storetest.Inner(st).Engine.Cache().CleanUp()
		if n := storetest.Inner(st).Engine.Cache().EstimatedSize(); n*1000 > most {
			t.Fatalf("the cache has %d documents of more than 1,000 bytes in %d", n, most)
		}
	}
	if n := storetest.Inner(st).Engine.Cache().EstimatedSize(); n < most/1000/3 {
		t.Errorf("it has %d memories", n)
	}
}
