package scopes

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/working"
)

// TestWorkingCheckpointsSize: with 100 checkpoints of a scope of 1 MB and small changes between them,
// the size on disk is that of the changes, and so is the log's. FAILURES 46.
func TestWorkingCheckpointsSize(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st, err := varve.Open(t.Context(), dir, &varve.Options{NoBackground: true})
	fixture.Must(t, err)
	defer st.Close()
	m := wm(t, st)
	const keys, size = 1000, 1000
	for i := 0; i < keys; i += 100 {
		many := map[string]any{}
		for k := i; k < i+100; k++ {
			many[fmt.Sprint("k", k)] = strings.Repeat("x", size)
		}
		fixture.Must(t, m.SetMany(t.Context(), many))
	}
	fixture.Must(t, st.Flush(t.Context()))
	before, logged := fileSize(t, dir), st.Admin().Stats().Durable
	for i := range 100 {
		fixture.Must(t, m.Set(t.Context(), fmt.Sprint("k", i), strings.Repeat("y", size)))
		_, err := m.Checkpoint(t.Context(), "")
		fixture.Must(t, err)
	}
	fixture.Must(t, st.Flush(t.Context()))
	after, wrote := fileSize(t, dir), st.Admin().Stats().Durable-logged
	t.Logf("%d bytes before, %d after 100 checkpoints, %d in the log", before, after, wrote)
	if after > 2*before+100*3*size {
		t.Errorf("100 checkpoints of %d bytes take %d", before, after)
	}
	if wrote > 100*2*size {
		t.Errorf("%d bytes of log", wrote)
	}
}

func fileSize(t *testing.T, dir string) int64 {
	t.Helper()
	info, err := os.Stat(scopeFile(t, dir))
	fixture.Must(t, err)
	return info.Size()
}

// TestWorkingFlat: the memory for values with a time to live, over many sessions, does not grow with
// time. VARVE_SETS=1000000 for the figures.
func TestWorkingFlat(t *testing.T) {
	total, sessions := 30_000, 1500
	if s := os.Getenv("VARVE_SETS"); s != "" {
		var err error
		total, err = strconv.Atoi(s)
		fixture.Must(t, err)
		sessions = 5000
	} else if !proofs.Long() {
		total, sessions = 5_000, 300
	}
	st, err := varve.Open(t.Context(), t.TempDir(), nil)
	fixture.Must(t, err)
	defer st.Close()
	all, err := working.NewSessions(st.Working().Home(), &working.SessionsOptions{Open: 100})
	fixture.Must(t, err)
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var first, most uint64
	value := strings.Repeat("v", 200)
	began := time.Now()
	const parts = 10
	for part := range parts {
		var wg sync.WaitGroup
		for g := range 16 {
			wg.Go(func() {
				for i := g; i < total/parts; i += 16 {
					n := part*total/parts + i
					scope := working.Scope{Session: fmt.Sprint("s", n*sessions/total)}
					err := all.With(t.Context(), scope, func(m *working.Memory) error {
						return m.Set(t.Context(), fmt.Sprint("k", n), value, working.Expires(50*time.Millisecond))
					})
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		is := heap()
		if part == 1 {
			first = is
		}
		if most = max(most, is); part > 1 && is > 2*first+8<<20 {
			t.Errorf("part %d: %d bytes of heap, %d at first", part, is, first)
		}
	}
	t.Logf("%d sets over %d sessions in %v: %d MB of heap after a tenth or two, %d at most", total, sessions,
		time.Since(began).Round(time.Second), first>>20, most>>20)
	fixture.Must(t, all.Close(t.Context()))
	fixture.Must(t, st.Flush(t.Context()))
	names, err := filepath.Glob(filepath.Join(st.Admin().Stats().Dir, "working", "*.json"))
	fixture.Must(t, err)
	if len(names) != sessions {
		t.Errorf("%d files, %d sessions", len(names), sessions)
	}
}
