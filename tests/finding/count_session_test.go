package finding

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/proofs"
)

// TestCountOfSession: the number of memories in a session is that of its listing, while memories change, move to other
// sessions, expire and are deleted, in the log, the delta and the base of the index.
func TestCountOfSession(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(proofs.Seed(t, 0), 1))
	now := time.Now()
	st, err := varve.Open(t.Context(), t.TempDir(), &varve.Options{Clock: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}()
	sessions := []string{"s", "s1", "s\x01", "s\x00t", `"s"`, "ü"}
	put := func(n int) {
		t.Helper()
		b := new(varve.Batch)
		for range n {
			m := varve.Memory{ID: fmt.Sprintf("%c%d", 'a'+r.IntN(2), r.IntN(1500)), Content: strings.Repeat("x", r.IntN(300))}
			if r.IntN(10) > 0 {
				m.Metadata = map[string]any{"session_id": sessions[r.IntN(len(sessions))]}
			}
			if r.IntN(8) == 0 {
				m.ExpiresAt = now.Add(time.Duration(r.IntN(40)) * time.Minute)
			}
			b.Put(m)
		}
		if err := st.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		for range n / 8 {
			err := st.Delete(t.Context(), fmt.Sprintf("%c%d", 'a'+r.IntN(2), r.IntN(1500)))
			if err != nil && !errors.Is(err, varve.ErrNotFound) {
				t.Fatal(err)
			}
		}
	}
	put(3000)
	for round := range 25 {
		switch r.IntN(3) {
		case 0:
			if err := st.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		case 1:
			if err := st.Admin().Compact(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		put(r.IntN(60))
		now = now.Add(time.Duration(r.IntN(6)) * time.Minute)
		for _, session := range sessions {
			for _, more := range [][]varve.Filter{nil, {varve.WithPrefix("a1")}} {
				filters := append([]varve.Filter{varve.InSession(session)}, more...)
				want := int64(0)
				for _, err := range st.Memories(t.Context(), filters...) {
					if err != nil {
						t.Fatal(err)
					}
					want++
				}
				if n, err := st.Count(t.Context(), filters...); err != nil || n != want {
					t.Fatalf("round %d: session %q has %d memories, %v; want %d (%d more filters)", round, session, n, err,
						want, len(more))
				}
			}
		}
	}
}
