package logs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
)

// mappedBelow returns the number of files of a folder that this process has mapped.
func mappedBelow(t *testing.T, dir string) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(b), dir+"/")
}

// A process that opens and closes stores all day, and one that has a store open while others rewrite its
// index all day, leak no file, no mapping and no goroutine.
func TestNothingIsKept(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	o := func(i int) *varve.Options {
		s := fixture.BusyOptions()
		s.ReadOnly = i%3 == 2
		return s
	}
	live := fixture.Open(t, dir, fixture.BusyOptions())
	use := func(st *varve.Store, i int) {
		t.Helper()
		for k := range 5 {
			id := fmt.Sprint("m", (i+k)%20)
			if err := storetest.Inner(st).Engine.Writable(); err == nil {
				if _, err := st.Put(ctx,
					varve.Memory{ID: id, Content: storetest.Content("x", 2000),
						Embedding: []float32{1, float32(i), float32(k)}}); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := st.Get(ctx, id); err != nil && !errors.Is(err, varve.ErrNotFound) {
				t.Fatal(err)
			}
		}
		if _, err := st.Search(ctx, varve.Query{Vector: []float32{1, 2, 3}, Limit: 3}); err != nil {
			t.Fatal(err)
		}
	}
	once := func(i int) {
		st, err := varve.Open(ctx, dir, o(i))
		if err != nil {
			t.Fatal(err)
		}
		use(st, i)
		if !storetest.Inner(st).Engine.Env().ReadOnly {
			if err := st.Admin().Compact(ctx); err != nil { // rewrites index and vectors
				t.Fatal(err)
			}
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		use(live, i)
	}
	take := func() (files, mapped, goroutines int) {
		return len(storetest.OpenBelow(dir)), mappedBelow(t, dir), runtime.NumGoroutine()
	}
	for i := range 6 {
		once(i)
	}
	files, mapped, goroutines := take()
	n := 60
	if !proofs.Long() {
		n = 12
	}
	for i := range n {
		once(i)
	}
	f, m, g := take()
	t.Logf("%d files, %d mapped, %d goroutines after 6 times; %d, %d, %d after %d more", files, mapped, goroutines, f, m,
		g, n)
	// Those of a flush in progress; never one for each time.
	if f > files+8 || m > mapped+4 || g > goroutines+8 {
		t.Errorf("it grows with every time")
	}
}
