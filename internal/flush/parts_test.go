package flush_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/varve-db/varve/internal/flush"
	"github.com/varve-db/varve/internal/parts"
	"github.com/varve-db/varve/internal/rebuild"
	"github.com/varve-db/varve/memstore"
)

// TestFlush verifies that a flush writes the document's file and the index.
func TestFlush(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := parts.New(t, dir)
	f, err := flush.New(p.Engine, p.Vectors, p.Views, rebuild.New(p.Engine, p.Vectors, p.Views, nil), p.Host, false)
	if err != nil {
		t.Fatal(err)
	}
	p.Put(t, memstore.Memory{ID: "a", Content: "one"})
	if err := f.Flush(t.Context(), flush.MergeAlways); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"memories/a.json", "memory_index.json"} {
		if info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name))); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if log := p.Engine.Log(); log.Spilled() != log.Durable() {
		t.Errorf("spilled up to %d of %d", log.Spilled(), log.Durable())
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
