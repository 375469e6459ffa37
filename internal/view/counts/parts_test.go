package counts_test

import (
	"testing"

	"github.com/varve-db/varve/internal/parts"
	"github.com/varve-db/varve/internal/view/counts"
	"github.com/varve-db/varve/memstore"
)

// TestPutTotals: what is put is counted from Watch on, in the store and in its session.
func TestPutTotals(t *testing.T) {
	t.Parallel()
	p := parts.New(t, t.TempDir())
	put := func(id, session string) {
		p.Put(t, memstore.Memory{ID: id, Content: "one", Metadata: map[string]any{"session_id": session}})
	}
	put("before", "s")
	cs := counts.New(p.Engine)
	cs.Watch()
	was := map[string]counts.Sum{}
	for _, session := range []string{"", "s", "other", "none"} {
		was[session] = cs.PutTotals(session) // totals begin at no particular number
	}
	put("a", "s")
	put("b", "other")
	for session, want := range map[string]int64{"": 2, "s": 1, "other": 1, "none": 0} {
		if sum := cs.PutTotals(session).Minus(was[session]); sum.N != want || (sum.Bytes > 0) != (want > 0) {
			t.Errorf("session %q: %+v, want %d", session, sum, want)
		}
	}
}
