package limits

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
)

// Edits by hand are adopted whatever the limits: a file that grows, and a new one. They count from then
// on: the next put is refused, or others are deleted.
func TestLimitsAndHandEdits(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	e := fixture.NewEditing(t, 3, &varve.Options{})
	fixture.LimitTo(t, e.St, func(c *varve.Config) { c.MaxBytes, c.MaxMemories = bytesIn(t, e.St).Bytes+100, 3 })
	long := strings.Repeat("by hand ", 1000)
	e.Edit("k0", "was 0", long)
	e.Look("k0")
	e.Want("k0", long)
	e.Save("new", `{"id":"new","content":"by hand"}`)
	e.Look("new")
	e.Want("new", "by hand")
	e.Flush()
	if list := e.Quarantined(); len(list) > 0 {
		t.Errorf("set aside: %v", list)
	}
	if n, err := e.St.Count(ctx); n != 4 || err != nil {
		t.Errorf("%d memories, %v", n, err)
	}
	var le *varve.LimitError
	if _, err := e.St.Put(ctx, varve.Memory{ID: "put", Content: "x"}); !errors.As(err, &le) || le.Have != 4 {
		t.Errorf("put over the limit: %v", err)
	}
	fixture.LimitTo(t, e.St, func(c *varve.Config) { c.MaxMemories = 0 })
	if _, err := e.St.Put(ctx, varve.Memory{ID: "put", Content: "x"}); !errors.As(err,
		&le) || le.What != "bytes" || le.Have < 8000 {
		t.Errorf("put over the limit: %v", err)
	}
	fixture.LimitTo(t, e.St, func(c *varve.Config) { c.AtLimit = varve.AtLimitEvictOldest })
	for i := range 10 {
		if _, err := e.St.Put(ctx, varve.Memory{ID: fmt.Sprint("put", i), Content: "x"}); err != nil {
			t.Fatal(err)
		}
		if s := bytesIn(t, e.St); s.Bytes > e.St.Admin().Config().MaxBytes {
			t.Errorf("%+v are there after a put", s)
		}
	}
}

// A later embedding, and a counted access, are written whatever the limits, because the memory exists
// already. Their bytes count: the next put is refused.
func TestLimitsAndOwnWrites(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	embedder := &fixture.Embedder{}
	embedder.Set(func([]string) ([][]float32, error) { return nil, errors.New("not now") })
	dir := t.TempDir()
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true, Embed: embedder.Embed})
	if _, err := st.Put(ctx, varve.Memory{ID: "a", Content: "eee"}); err != nil {
		t.Fatal(err)
	}
	was := bytesIn(t, st).Bytes
	fixture.LimitTo(t, st, func(c *varve.Config) { c.MaxBytes, c.MaxSessionBytes = was, was })
	embedder.Set(nil)
	if n, err := st.Vectors().EmbedPending(ctx); err != nil || n != 1 {
		t.Errorf("%d got an embedding, %v", n, err)
	}
	if err := errors.Join(st.Touch(ctx, "a"), storetest.Inner(st).Retention.WriteTouched(ctx)); err != nil {
		t.Error(err)
	}
	m, err := st.Get(ctx, "a")
	if err != nil || len(m.Embedding) == 0 || m.AccessCount != 1 {
		t.Errorf("%+v, %v", m, err)
	}
	if now := bytesIn(t, st).Bytes; now <= was {
		t.Errorf("%d bytes, there were %d", now, was)
	}
	var le *varve.LimitError
	if _, err := st.Put(ctx, varve.Memory{ID: "b", Content: "x"}); !errors.As(err, &le) || le.Have <= was {
		t.Errorf("put over the limit: %v", err)
	}
	if err := st.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "memories", "a.json")); err != nil || info.Size() != bytesIn(t, st).Bytes {
		t.Errorf("%v, %v", info, err)
	}
}
