package repair_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/scratch"

	"go.uber.org/goleak"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
)

func TestMain(m *testing.M) {
	remove := scratch.Use()
	// The tests have a repair key of their own.
	state, err := os.MkdirTemp("", "state-")
	if err == nil {
		err = os.Setenv("XDG_STATE_HOME", state)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(state)
	if template.dir != "" {
		_ = os.RemoveAll(filepath.Dir(template.dir))
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	remove()
	os.Exit(code)
}

const (
	settled  = 420 // memories in files, base and delta
	unspilt  = 20  // in files, and in the log
	pending  = 120 // in the log only
	segments = 64 << 10
)

func id(i int) string { return fmt.Sprintf("m-%05d", i) }

// memory returns a memory with a long session, so that few of them make an index that is not small, and
// content that fills segments and does not compress.
func memory(i int) varve.Memory {
	r := rand.New(rand.NewPCG(uint64(i), 1))
	return varve.Memory{ID: id(i), Content: fmt.Sprintf("memory %d %s", i, strings.Repeat("x", 1500+r.IntN(500))),
		Metadata: map[string]any{"session_id": fmt.Sprintf("s%d-%s", i%7, strings.Repeat("s", 900))}}
}

// put writes memories in commits that fit a small segment.
func put(t testing.TB, st *varve.Store, from, to int) {
	t.Helper()
	var wait sync.WaitGroup
	for w := range 8 {
		wait.Go(func() {
			for i := from + w; i < to; i += 8 {
				if _, err := st.Put(context.Background(), memory(i)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wait.Wait()
}

var template struct {
	once sync.Once
	dir  string
}

// store returns a copy of a store that has everything that verify reads: base, delta, backup, archive,
// entries below and above flushed, several segments.
func store(t testing.TB) (*varve.Store, string) {
	t.Helper()
	template.once.Do(func() { makeTemplate(t) })
	dir := filepath.Join(t.TempDir(), "s")
	fixture.CopyDir(t, template.dir, dir)
	st := openStore(t, dir, &varve.Options{NoBackground: true, MustExist: true})
	put(t, st, settled+unspilt, settled+unspilt+pending)
	return st, dir
}

func openStore(t testing.TB, dir string, o *varve.Options) *varve.Store {
	t.Helper()
	o.SegmentSize, o.CacheBytes = segments, -1
	st, err := varve.Open(context.Background(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() }) // of a store that was damaged on purpose
	return st
}

func makeTemplate(t testing.TB) {
	parent, err := os.MkdirTemp("", "verify-")
	if err != nil {
		t.Fatal(err)
	}
	template.dir = filepath.Join(parent, "s")
	st := openStore(t, template.dir, &varve.Options{NoBackground: true})
	for i := range 4 {
		put(t, st, i*100, (i+1)*100)
		if err := st.Flush(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	delta := make(chan struct{}, 1000)
	st = openStore(t, template.dir, storetest.In(&varve.Options{
		Listener: func(e varve.Event) {
			if e.Kind == varve.EventIndex && strings.HasSuffix(e.Path, "delta.json") {
				delta <- struct{}{}
			}
		},
	}, storetest.Environment{System: vfs.System{SpillBytes: 1}}))
	put(t, st, 400, settled)
	<-delta
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	// In files, but not in the index: in a round that does not write the index yet.
	st = openStore(t, template.dir, &varve.Options{NoBackground: true})
	put(t, st, settled, settled+unspilt)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

func verify(t testing.TB, st *varve.Store, o varve.VerifyOptions) (list []varve.Finding) {
	t.Helper()
	for f, err := range st.Admin().Verify(context.Background(), o) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, f)
	}
	return list
}
