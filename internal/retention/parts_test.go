package retention_test

import (
	"errors"
	"testing"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/parts"
	"github.com/varve-db/varve/internal/retention"
	"github.com/varve-db/varve/memstore"
)

// TestDelete: a session's memories are deleted, those of other sessions stay.
func TestDelete(t *testing.T) {
	t.Parallel()
	p := parts.New(t, t.TempDir())
	for id, session := range map[string]string{"a": "s1", "b": "s1", "c": "s2"} {
		p.Put(t, memstore.Memory{ID: id, Content: id, Timestamp: time.Now(),
			Metadata: map[string]any{"session_id": session}})
	}
	r := retention.New(p.Engine, p.Committer, p.Counts, p.Orders, p.Scopes, nil)
	if n, err := r.Delete(t.Context(), "s1"); n != 2 || err != nil {
		t.Errorf("deleted %d, %v", n, err)
	}
	if _, err := r.One(t.Context(), "s1"); !errors.Is(err, errs.ErrNotFound) {
		t.Errorf("the session: %v", err)
	}
	if s, err := r.One(t.Context(), "s2"); err != nil || s.Memories != 1 {
		t.Errorf("the other session: %+v, %v", s, err)
	}
}
