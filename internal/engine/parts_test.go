package engine_test

import (
	"errors"
	"testing"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/parts"
	"github.com/varve-db/varve/memstore"
)

// TestFind verifies that a document is found in the log and, once it is in a file, through the index. A file that was
// edited is for the Host to judge.
func TestFind(t *testing.T) {
	t.Parallel()
	p := parts.New(t, t.TempDir())
	memories := p.Engine.Kinds().Memories
	version := p.Put(t, memstore.Memory{ID: "a", Content: "one"})
	for _, where := range []string{"log", "file"} {
		v, err := p.Engine.Find(t.Context(), memories, "a", true)
		if err != nil || v.LSN != version || len(v.Doc) == 0 {
			t.Errorf("in the %s: version %d of %d bytes, %v", where, v.LSN, len(v.Doc), err)
		}
		p.Flush(t)
	}
	if _, err := p.Engine.Find(t.Context(), memories, "b", true); !errors.Is(err, errs.ErrNotFound) {
		t.Errorf("of an id without a document: %v", err)
	}
	if n, err := p.Engine.Count(t.Context(), engine.Filters{}); n != 1 || err != nil {
		t.Errorf("counted %d, %v", n, err)
	}
}
