package adopt_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve/internal/adopt"
	"github.com/varve-db/varve/internal/parts"
	"github.com/varve-db/varve/memstore"
)

// TestAdopt verifies that a file that was edited becomes a new version.
func TestAdopt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := parts.New(t, dir)
	a := adopt.New(p.Engine, p.Vectors, p.Committer, p.Flusher)
	p.Host.Judge, p.Host.Aside = a.JudgeEdit, a.AdoptAside
	was := p.Put(t, memstore.Memory{ID: "a", Content: "one"})
	p.Flush(t)
	file := filepath.Join(dir, "memories", "a.json")
	b, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, []byte(strings.Replace(string(b), "one", "edited by hand", 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	v, err := p.Engine.Find(t.Context(), p.Engine.Kinds().Memories, "a", true)
	if err != nil || v.LSN <= was || !strings.Contains(string(v.Doc), "edited by hand") {
		t.Errorf("version %d after %d: %s, %v", v.LSN, was, v.Doc, err)
	}
}
