package varve_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
)

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "s")
	st := fixture.Open(t, dir, nil)
	m, err := st.Put(ctx, varve.Memory{Content: "prefers short answers", Metadata: map[string]any{"session_id": "s1"}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := st.Get(ctx, m.ID)
	if err != nil || got.Content != m.Content || got.Version != m.Version {
		t.Fatalf("got %+v, %v", got, err)
	}
	if err := st.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	raw, err := st.Admin().GetRaw(ctx, m.ID)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(filepath.Join(dir, "memories", m.ID+".json"))
	if err != nil || string(file) != string(raw) {
		t.Fatalf("file %q, raw %q, %v", file, raw, err)
	}
	for i := range 50 {
		if _, err := st.Put(ctx, varve.Memory{ID: fmt.Sprint("k", i), Content: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Delete(ctx, "k7"); err != nil {
		t.Fatal(err)
	}
	if err := st.Delete(ctx, "k7"); !errors.Is(err, varve.ErrNotFound) {
		t.Fatalf("second delete: %v", err)
	}
	n, err := st.Count(ctx)
	if err != nil || n != 50 {
		t.Fatalf("count %d, %v", n, err)
	}
	list := 0
	for _, err := range st.Memories(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		list++
	}
	if list != 50 {
		t.Fatalf("listed %d", list)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	st = fixture.Open(t, dir, nil)
	if r := st.Admin().OpenReport(); !r.Clean {
		t.Errorf("report %+v", r)
	}
	if n, err := st.Count(ctx); err != nil || n != 50 {
		t.Fatalf("after reopening: count %d, %v", n, err)
	}
	if got, err := st.Get(ctx, m.ID); err != nil || got.Content != m.Content {
		t.Fatalf("after reopening: %+v, %v", got, err)
	}
	n, err = st.Count(ctx, varve.InSession("s1"))
	if err != nil || n != 1 {
		t.Fatalf("in session: %d, %v", n, err)
	}
}

func BenchmarkPut1(b *testing.B) {
	ctx := context.Background()
	st := fixture.Open(b, b.TempDir(), nil)
	content := string(make([]byte, 0)) + fmt.Sprintf("%0800d", 1)
	for b.Loop() {
		if _, err := st.Put(ctx, varve.Memory{Content: content}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPut64(b *testing.B) {
	ctx := context.Background()
	st := fixture.Open(b, b.TempDir(), nil)
	content := fmt.Sprintf("%0800d", 1)
	b.SetParallelism(32)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if _, err := st.Put(ctx, varve.Memory{Content: content}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkGetRaw(b *testing.B) {
	ctx := context.Background()
	st := fixture.Open(b, b.TempDir(), nil)
	for i := range 1000 {
		if _, err := st.Put(ctx, varve.Memory{ID: fmt.Sprint("k", i), Content: fmt.Sprintf("%0800d", 1)}); err != nil {
			b.Fatal(err)
		}
	}
	if err := st.Flush(ctx); err != nil {
		b.Fatal(err)
	}
	i := 0
	for b.Loop() {
		if _, err := st.Admin().GetRaw(ctx, fmt.Sprint("k", i%1000)); err != nil {
			b.Fatal(err)
		}
		i++
	}
}
