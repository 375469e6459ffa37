package limits

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/memstore"
)

// TestEvictionSparesMembers: putting a memory and an assembly in one commit does not evict the
// assembly's members because of that memory.
func TestEvictionSparesMembers(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	st := fixture.Open(t, t.TempDir(), &varve.Options{NoBackground: true})
	fixture.LimitTo(t, st, func(c *varve.Config) { c.MaxMemories, c.AtLimit = 5, varve.AtLimitEvictOldest })
	for i := range 5 {
		if _, err := st.Put(ctx, varve.Memory{ID: fmt.Sprint("m", i), Content: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	err := st.Transact(ctx, func(tx *varve.Tx) error {
		if _, err := tx.Put(varve.Memory{ID: "new", Content: "y"}); err != nil {
			return err
		}
		_, err := tx.PutAssembly(varve.Assembly{ID: "a", Name: "a", MemoryIDs: []string{"m0", "new"}})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if a, err := st.Assemblies().Get(ctx, "a"); err != nil || !slices.Equal(a.MemoryIDs, []string{"m0", "new"}) {
		t.Errorf("%v, %v", a.MemoryIDs, err)
	}
	if n, err := st.Count(ctx); n != 5 || err != nil {
		t.Errorf("%d memories, %v", n, err)
	}
}

// TestMarkStays: the mark of a take-over is never deleted because of a limit or an age.
func TestMarkStays(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, policy := range []string{varve.AtLimitEvictOldest, varve.AtLimitEvictLowest} {
		c := fixture.ClockAt(time.Unix(1_700_000_000, 0))
		st := fixture.Open(t, t.TempDir(), c.On(&varve.Options{NoBackground: true, Clock: c.Now}))
		put := func(id string, score float64) {
			t.Helper()
			c.Add(time.Second)
			if _, err := st.Put(ctx, varve.Memory{ID: id, Content: "x", QuickRecalScore: score}); err != nil {
				t.Fatal(err)
			}
			if _, err := st.Get(ctx, memstore.TakeOverID); err != nil {
				t.Fatalf("%s: after %s: %v", policy, id, err)
			}
		}
		put(memstore.TakeOverID, -1) // in the list when it is made
		fixture.LimitTo(t, st, func(c *varve.Config) { c.MaxMemories, c.AtLimit = 5, policy })
		for i := range 10 {
			put(fmt.Sprint("m", i), 1)
		}
		put(memstore.TakeOverID, -1) // and as something that changes
		for i := range 10 {
			put(fmt.Sprint("n", i), 1)
		}
		if n, err := st.Count(ctx); n != 5 || err != nil {
			t.Errorf("%d memories, %v", n, err)
		}
		fixture.LimitTo(t, st, func(c *varve.Config) { c.MaxAge = 3600 })
		for range 6 {
			c.Add(2 * time.Hour)
			if err := st.Flush(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := st.Get(ctx, memstore.TakeOverID); err != nil {
			t.Errorf("after its age: %v", err)
		}
		if n, err := st.Count(ctx); n != 1 || err != nil {
			t.Errorf("%d memories are left of the age, %v", n, err)
		}
	}
}
