package history_test

import (
	"slices"
	"testing"

	"github.com/varve-db/varve/internal/history"
	"github.com/varve-db/varve/internal/parts"
	"github.com/varve-db/varve/memstore"
)

// TestEach: all versions of a document, and the commits that made them, the newest first.
func TestEach(t *testing.T) {
	t.Parallel()
	p := parts.New(t, t.TempDir())
	first := p.Put(t, memstore.Memory{ID: "a", Content: "one"})
	second := p.Put(t, memstore.Memory{ID: "a", Content: "two"})
	h := history.New(p.Engine)
	for _, where := range []string{"log", "files"} {
		var versions []uint64
		h.Each(t.Context(), p.Engine.Kinds().Memories, "a", func(v history.Version, err error) bool {
			if err != nil {
				t.Error(err)
			}
			versions = append(versions, v.LSN)
			return true
		})
		slices.Sort(versions)
		if !slices.Equal(versions, []uint64{first, second}) {
			t.Errorf("in the %s: versions %v, want %d and %d", where, versions, first, second)
		}
		commits := 0
		h.Log(t.Context(), history.LogFilter{}, func(_ history.Commit, err error) bool {
			if err != nil {
				t.Error(err)
			}
			commits++
			return true
		})
		if commits != 2 {
			t.Errorf("in the %s: %d commits", where, commits)
		}
		p.Flush(t)
	}
}
