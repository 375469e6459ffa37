package commit_test

import (
	"errors"
	"testing"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/parts"
	"github.com/varve-db/varve/memstore"
)

// TestCommit verifies that operations are written together or not at all.
func TestCommit(t *testing.T) {
	t.Parallel()
	p := parts.New(t, t.TempDir())
	c := commit.New(p.Engine, p.Vectors, p.Counts, p.Flusher, p.Host, commit.Config{})
	put := func(id string) commit.Op {
		return commit.Op{ID: id, Memory: &memstore.Memory{ID: id, Content: "text of " + id}}
	}
	if err := c.Commit(t.Context(), []commit.Op{put("a"), put("b")}, nil, 0); err != nil {
		t.Fatal(err)
	}
	missing := commit.Op{ID: "not there", MustExist: true}
	if err := c.Commit(t.Context(), []commit.Op{put("c"), missing}, nil, 0); !errors.Is(err, errs.ErrNotFound) {
		t.Errorf("a deletion of what is not there: %v", err)
	}
	for id, want := range map[string]bool{"a": true, "b": true, "c": false} {
		_, err := p.Engine.Find(t.Context(), p.Engine.Kinds().Memories, id, true)
		if found := err == nil; found != want || err != nil && !errors.Is(err, errs.ErrNotFound) {
			t.Errorf("%s: %v", id, err)
		}
	}
}
