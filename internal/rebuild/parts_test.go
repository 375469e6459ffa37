package rebuild_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/varve-db/varve/internal/parts"
	"github.com/varve-db/varve/internal/rebuild"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/wal"
)

// TestFrom: without an index, one is built from the files.
func TestFrom(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := parts.New(t, dir)
	p.Put(t, memstore.Memory{ID: "a", Content: "one"})
	p.Put(t, memstore.Memory{ID: "b", Content: "two"})
	p.Flush(t)
	if err := os.Remove(filepath.Join(dir, "memory_index.json")); err != nil {
		t.Fatal(err)
	}
	log := p.Engine.Log()
	mk := rebuild.New(p.Engine, p.Vectors, p.Views, nil)
	want := rebuild.Want{Store: log.UUID(), At: wal.Mark{LSN: log.Spilled()}}
	set, from, n, err := mk.From(t.Context(), want, log.Past())
	if err != nil {
		t.Fatal(err)
	}
	if n != 2 {
		t.Errorf("%d memories from %s", n, from)
	}
	if err := set.Release(); err != nil {
		t.Error(err)
	}
}
