package vector

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
)

// A rebuilt index gives all vectors other numbers at the same position, perhaps within the same second.
// At whatever step the write is killed, the valid mapping finds its own file.
func TestWrittenAgainAtOnePosition(t *testing.T) {
	t.Parallel()
	done := false
	for steps := 0; !done; steps++ {
		d, fsys := newDisk(t)
		r := rand.New(rand.NewPCG(uint64(steps), 11))
		m := newModel(5, IP)
		for i := range 6 {
			m.put(Kind(i%2), fmt.Sprint("id", i), randomVector(r, m.dim))
		}
		if _, err := WriteBase(Empty(), m.target(fsys), m.take(t)); err != nil {
			t.Fatal(err)
		}
		old := m.copy()
		for i := range 6 {
			m.put(Kind(i%2), fmt.Sprint("id", i), randomVector(r, m.dim))
		}
		m.lsn = old.lsn
		v := mustView(t, fsys, nil)
		left := steps
		_, err := WriteBase(v.Set(), m.target(stopAfter(fsys, &left)), m.take(t))
		if err != nil && !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		done = err == nil
		_ = v.Release()
		w := mustView(t, d.Copy().Process("reader"), nil)
		for verr := range Verify(w.Set()) {
			t.Fatalf("%d operations: %v", steps, verr)
		}
		was, is := old.check(w, r), m.check(w, r)
		if was != nil && is != nil || done && is != nil {
			t.Fatalf("%d operations: neither the old ones (%v) nor the new ones (%v)", steps, was, is)
		}
		_ = w.Release()
	}
}
