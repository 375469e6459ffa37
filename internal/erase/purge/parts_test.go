package purge_test

import (
	"errors"
	"testing"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/erase/purge"
	"github.com/varve-db/varve/internal/history"
	"github.com/varve-db/varve/internal/parts"
	"github.com/varve-db/varve/internal/retention"
	"github.com/varve-db/varve/memstore"
)

// TestPurge: what was purged is neither a document nor in the history; everything else stays.
func TestPurge(t *testing.T) {
	t.Parallel()
	p := parts.New(t, t.TempDir())
	memories := p.Engine.Kinds().Memories
	p.Put(t, memstore.Memory{ID: "secret", Content: "one"})
	p.Put(t, memstore.Memory{ID: "other", Content: "two"})
	p.Flush(t)
	h := history.New(p.Engine)
	r := retention.New(p.Engine, p.Committer, p.Counts, p.Orders, p.Scopes, nil)
	report, err := purge.New(p.Engine, p.Vectors, p.Committer, p.Flusher, p.Scopes, r, h).Purge(t.Context(), memories,
		[]string{"secret"})
	if err != nil || len(report.Deleted) != 1 {
		t.Fatalf("%+v, %v", report, err)
	}
	for id, want := range map[string]bool{"secret": false, "other": true} {
		_, err := p.Engine.Find(t.Context(), memories, id, true)
		if (err == nil) != want || err != nil && !errors.Is(err, errs.ErrNotFound) {
			t.Errorf("%s: %v", id, err)
		}
		kept := false
		h.Each(t.Context(), memories, id, func(v history.Version, err error) bool {
			kept = kept || err == nil && !v.Deleted
			return true
		})
		if kept != want {
			t.Errorf("%s has versions: %v, want %v", id, kept, want)
		}
	}
}
