package index

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/crash"
)

// TestPowerCut cuts the power before each step of a delta and of a merge, in every way that the crash
// file system supports, and once after it: either the old or the new set must load completely; after
// success only the new one.
func TestPowerCut(t *testing.T) {
	proofs.OneGoroutine(t)
	const dir = "/store"
	for _, merge := range []bool{false, true} {
		done := false
		for steps := 0; !done; steps++ {
			d := crash.New()
			fsys := d.Process("writer")
			if err := vfs.MkdirAll(fsys, dir, 0o700); err != nil {
				t.Fatal(err)
			}
			m := newModel()
			for i := range 20 {
				m.put(i%2, fmt.Sprint("id", i), "s", t0, []string{"id0", "id2", "gone"}[:i%2*3]...)
			}
			s := write(t, fsys, dir, m, Empty(8), WriteBase)
			m.del(Memories, "id0")
			s = write(t, fsys, dir, m, s, WriteDelta)
			before := *m
			before.live = [2]map[string]Entry{maps.Clone(m.live[0]), maps.Clone(m.live[1])}
			m.put(Memories, "id0", "s2", t0)
			m.put(Memories, "id2", "s2", time.Time{})
			round := WriteDelta
			if merge {
				round = WriteBase
			}
			left := steps
			_, err := round(s, target(failFS{fsys, &left}, dir, m.lsn), m.take())
			if err != nil && !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
			// A failed backup does not fail the round, so the round can succeed with no step left.
			done = err == nil && left > 0
			for _, p := range crash.Patterns() {
				for seed := range uint64(4) {
					after := d.Crash(p, rand.New(rand.NewPCG(seed, 1))).Process("reader")
					spilled := before.lsn
					if err == nil {
						spilled = m.lsn
					}
					s, lerr := Load(after, dir, Want{Store: store, Spilled: spilled}, nil)
					if lerr != nil {
						t.Fatalf("merge %v, %d steps, %v, seed %d: %v", merge, steps, p, seed, lerr)
					}
					if s.LSN() == m.lsn {
						m.check(t, s)
					} else {
						before.check(t, s)
					}
					_ = s.Release()
				}
			}
			_ = s.Release()
		}
	}
}

func write(t testing.TB, fsys vfs.FS, dir string, m *model, s *Set, round func(*Set, Target, Changes) (Written, error)) *Set {
	t.Helper()
	if _, err := round(s, target(fsys, dir, m.lsn), m.take()); err != nil {
		t.Fatal(err)
	}
	next, err := Load(fsys, dir, Want{Store: store, Spilled: m.lsn}, s)
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Release()
	return next
}
