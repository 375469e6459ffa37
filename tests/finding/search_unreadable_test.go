package finding

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/fault"
	"github.com/varve-db/varve/memstore"
)

// unreadable returns the system's files, of which those with a path that ends so cannot be read.
func unreadable(path string) vfs.System {
	return vfs.System{FS: fault.New(vfs.OS(), func(op *fault.Op) error {
		if strings.HasSuffix(op.Path, path) {
			return syscall.EIO
		}
		return nil
	})}
}

// A memory that cannot be read does not prevent any kind of search, or any filter, from finding the
// others; and the error names it.
func TestSearchBesideTheUnreadable(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	for _, id := range []string{"a", "b", "c"} {
		if _, err := st.Put(ctx,
			varve.Memory{ID: id, Content: "word", Embedding: []float32{1, 2},
				Metadata: map[string]any{"category": "k", "session_id": "s"}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	st = fixture.Open(t, dir, storetest.In(&varve.Options{NoBackground: true},
		storetest.Environment{System: unreadable("memories/a.json")}))
	for _, filters := range [][]varve.Filter{nil, {varve.InCategory("k")}, {varve.InSession("s")},
		{varve.InSession("s"), varve.InCategory("k")}, {varve.After("0"), varve.InCategory("k")}} {
		for _, q := range []varve.Query{{Vector: []float32{1, 2}}, {Like: "b"}, {Text: "word"}, {Text: "word", Recency: 1},
			{Vector: []float32{1, 2}, Limit: 1}} {
			want := 2
			if q.Like != "" || q.Limit == 1 { // nor does it take the place of another one
				want = 1
			}
			hits, err := st.Search(ctx, q, filters...)
			if len(hits) != want || err == nil || !strings.Contains(err.Error(), "a.json") || errors.Is(err, varve.ErrNotFound) {
				t.Errorf("%d filters, %+v: %q, %v", len(filters), q, fixture.IdsOf(hits), err)
			}
		}
	}
}

// The doc comments of Memories, Count and Search hold for a memory whose file became unreadable after it
// was indexed: calls that read documents name it, calls that do not return it. A store this large uses
// the index of words.
func TestIndexedThenUnreadable(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	var b varve.Batch
	for i := range 1500 {
		k := fmt.Sprint("k", i%300)
		b.Put(varve.Memory{ID: fmt.Sprintf("m%04d", i), Content: "x word" + fmt.Sprint(i),
			Metadata: map[string]any{"category": k, "session_id": k}})
	}
	if err := errors.Join(st.Apply(ctx, &b), st.Admin().Compact(ctx), st.Close()); err != nil {
		t.Fatal(err)
	}
	st = fixture.Open(t, dir, storetest.In(&varve.Options{NoBackground: true},
		storetest.Environment{System: unreadable("memories/m0003.json")}))
	names := func(err error) bool { return err != nil && strings.Contains(err.Error(), `"m0003"`) }
	for _, c := range []struct {
		name          string
		f             varve.Filter
		listed, count int64
		reads         bool // documents
		found         bool // the search for x meets it
	}{
		{"prefix", varve.WithPrefix(""), 1499, 1500, false, false},
		{"session", varve.InSession("k3"), 4, 5, false, true},
		{"created", varve.Created(time.Unix(1, 0), time.Time{}), 1499, 1500, false, false},
		{"category", varve.InCategory("k3"), 4, 4, true, true},
		{"another category", varve.InCategory("k4"), 5, 5, false, false},
		{"since", varve.Since(time.Unix(1, 0)), 1499, 1500, false, false},
	} {
		if n, err := st.Count(ctx, c.f); n != c.count || names(err) != c.reads {
			t.Errorf("%s: count %d, %v", c.name, n, err)
		}
		for _, sort := range []string{"", "-updated"} {
			filters := []varve.Filter{c.f}
			if sort != "" {
				o, err := memstore.ParseOrder(sort, "")
				if err != nil {
					t.Fatal(err)
				}
				filters = append(filters, varve.Sorted(o))
			}
			listed, named := int64(0), false
			for _, err := range st.Memories(ctx, filters...) {
				if err == nil {
					listed++
				}
				named = named || names(err)
			}
			if listed != c.listed || named != (c.name != "another category") {
				t.Errorf("%s: listed %d %s, named %v", c.name, listed, sort, named)
			}
		}
		hits, err := st.Search(ctx, varve.Query{Text: "x", Limit: 5}, c.f)
		if len(hits) != map[bool]int{true: 4, false: 5}[c.found] || names(err) != c.found {
			t.Errorf("%s: found %q, %v", c.name, fixture.IdsOf(hits), err)
		}
		if hits, err := st.Search(ctx, varve.Query{Text: "x word3"},
			c.f); c.name != "another category" && !names(err) || slices.Contains(fixture.IdsOf(hits), "m0003") {
			t.Errorf("%s: found %q, %v", c.name, fixture.IdsOf(hits), err)
		}
	}
}

// A search that is canceled while it reads a hit ends with the context's error, and not without hits.
func TestSearchCancelledInARead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st := fixture.Open(t, dir, nil)
	for _, id := range []string{"a", "b", "c"} {
		if _, err := st.Put(t.Context(),
			varve.Memory{ID: id, Content: "word", Embedding: []float32{1, 2},
				Metadata: map[string]any{"tags": []any{"t"}}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	var cancel context.CancelFunc
	var with error
	fsys := fault.New(vfs.OS(), func(op *fault.Op) error {
		if strings.HasSuffix(op.Path, "memories/b.json") {
			cancel()
			return with
		}
		return nil
	})
	st = fixture.Open(t, dir, storetest.In(&varve.Options{NoBackground: true, CacheBytes: -1},
		storetest.Environment{System: vfs.System{FS: fsys}}))
	for _, with = range []error{nil, syscall.EIO} {
		for _, filters := range [][]varve.Filter{nil, {varve.WithTag("t")}} {
			for _, q := range []varve.Query{{Text: "word"}, {Text: `"word"`}, {Vector: []float32{1, 2}}} {
				var ctx context.Context
				ctx, cancel = context.WithCancel(t.Context())
				if hits, err := st.Search(ctx, q, filters...); !errors.Is(err, context.Canceled) {
					t.Errorf("%d filters, %+v, read with %v: %q, %v", len(filters), q, with, fixture.IdsOf(hits), err)
				}
				cancel()
			}
		}
	}
}
