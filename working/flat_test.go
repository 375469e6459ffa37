package working_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/working"
)

// TestMemoryFlat: memory use does not grow with the number of values that have expired and sessions that
// have ended.
func TestMemoryFlat(t *testing.T) {
	sets, opened := 1_000_000, 5_000
	if !proofs.Long() {
		sets, opened = 50_000, 500
	}
	c := newTestClock()
	h := working.NewLocal(c)
	s, err := working.NewSessions(h, &working.SessionsOptions{Open: 100, Memory: working.Options{Clock: c}})
	if err != nil {
		t.Fatal(err)
	}
	var early, late uint64
	most := 0
	for i := range sets {
		c.advance(time.Millisecond)
		err := s.With(t.Context(), working.Scope{Session: fmt.Sprint(i * opened / sets)}, func(m *working.Memory) error {
			if i%1000 == 999 {
				st, err := m.Stats(t.Context())
				if err != nil {
					return err
				}
				most = max(most, st.UserKeys+st.Expired)
			}
			return m.Set(t.Context(), fmt.Sprint("k", i), i, working.Expires(50*time.Millisecond))
		})
		if err != nil {
			t.Fatal(err)
		}
		switch i {
		case sets / 5:
			early = heap()
		case sets - 1:
			late = heap()
		}
	}
	n := 0
	for range h.Scopes(t.Context()) {
		n++
	}
	if n > 100 || most > 60 || late > early+8<<20 {
		t.Errorf("%d scopes, up to %d keys in one, %d bytes in use early on and %d in the end", n, most, early, late)
	}
	t.Logf("%d sets in %d sessions: up to %d keys in one, %d KiB in use early on, %d KiB in the end", sets, opened, most, early>>10, late>>10)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
