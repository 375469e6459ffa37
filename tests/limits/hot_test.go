package limits

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/memstore"
)

// Puts of one memory by several goroutines of two processes: none is lost, each is the version after the
// one before it, and takes over what a put keeps; a conditional put succeeds only after the version that
// it names; an update sees the version before it.
func TestHotPut(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dir := t.TempDir()
	stores := []*varve.Store{fixture.Open(t, dir, &varve.Options{NoBackground: true}),
		fixture.Open(t, dir, &varve.Options{NoBackground: true})}
	first, err := memstore.Decode([]byte(`{"id":"a","content":"first","timestamp":"2026-01-01T00:00:00Z","ours":{"n":1}}`),
		memstore.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	created, err := stores[0].Put(ctx, *first)
	if err != nil {
		t.Fatal(err)
	}
	const goroutines, each = 8, 25
	var wg sync.WaitGroup
	var mu sync.Mutex
	wrote := map[uint64]uint64{created.Version: 0} // the version that it required before it, if any
	did := func(version, behind uint64) {
		mu.Lock()
		defer mu.Unlock()
		if _, twice := wrote[version]; twice {
			t.Errorf("version %d was given twice", version)
		}
		wrote[version] = behind
	}
	for g := range 2 * goroutines {
		st := stores[g%2]
		wg.Go(func() {
			for i := range each {
				switch {
				case g < 10:
					m, err := st.Put(ctx, varve.Memory{ID: "a", Content: fmt.Sprint(g, "-", i)})
					if err != nil {
						t.Error(err)
						return
					}
					did(m.Version, 0)
				case g < 13:
					v, err := st.Get(ctx, "a")
					if err != nil {
						t.Error(err)
						return
					}
					m, err := st.Put(ctx, varve.Memory{ID: "a", Content: "if"}, varve.IfVersion(v.Version))
					if err == nil {
						did(m.Version, v.Version)
					} else if !errors.Is(err, varve.ErrConflict) {
						t.Error(err)
					}
				default:
					var behind uint64
					m, err := st.Update(ctx, "a", func(m *varve.Memory) error {
						behind = m.Version
						m.Content += "+"
						return nil
					})
					if err != nil {
						t.Error(err)
						return
					}
					did(m.Version, behind)
				}
			}
		})
	}
	wg.Wait()
	var before uint64
	n := 0
	for v, err := range stores[0].History(ctx, "a") {
		if err != nil {
			t.Fatal(err)
		}
		behind, ok := wrote[v.LSN]
		switch {
		case !ok:
			t.Errorf("nobody was told of version %d", v.LSN)
		case v.Previous != before:
			t.Errorf("version %d names %d as the one before it, that is %d", v.LSN, v.Previous, before)
		case behind != 0 && behind != before:
			t.Errorf("version %d was to be behind %d, it is behind %d", v.LSN, behind, before)
		}
		m, err := memstore.Decode(v.Document, memstore.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !m.CreatedAt.Equal(created.CreatedAt) || !bytes.Contains(v.Document, []byte(`"ours": {"n":1}`)) {
			t.Errorf("version %d does not keep what a put keeps: %s", v.LSN, v.Document)
		}
		before = v.LSN
		n++
	}
	if n != len(wrote) {
		t.Errorf("%d versions of %d are there", n, len(wrote))
	}
	if m, err := stores[1].Get(ctx, "a"); err != nil || m.Version != before {
		t.Errorf("the newest is %d, %v, not %d", m.Version, err, before)
	}
	if n, err := stores[0].Count(ctx); err != nil || n != 1 {
		t.Errorf("%d memories, %v", n, err)
	}
}

// Unconditional puts are not prepared again by their caller, however many there are: the log prepares
// them when it is their turn.
func TestHotGroups(t *testing.T) {
	t.Parallel()
	l := &fixture.Conflicts{}
	st := fixture.Open(t, t.TempDir(), &varve.Options{NoBackground: true, Logger: l.Logger()})
	if _, err := st.Put(t.Context(), varve.Memory{ID: "a", Content: "first"}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for range 20 {
				if _, err := st.Put(t.Context(), varve.Memory{ID: "a", Content: "x"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := l.N.Load(); n > 0 {
		t.Errorf("640 puts were prepared again %d times", n)
	}
}

// An update of a memory that others put continuously ends.
func TestHotUpdate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one, two := fixture.Open(t, dir, &varve.Options{NoBackground: true}),
		fixture.Open(t, dir, &varve.Options{NoBackground: true})
	if _, err := one.Put(t.Context(), varve.Memory{ID: "a", Content: "first"}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var wg sync.WaitGroup
	var puts atomic.Int64
	many := make(chan struct{})
	for g := range 32 {
		wg.Go(func() {
			for ctx.Err() == nil {
				if puts.Add(1) == 500 {
					close(many)
				}
				if _, err := []*varve.Store{one, two}[g%2].Put(ctx,
					varve.Memory{ID: "a", Content: "x"}); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
	}
	some, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	<-many
	for range 5 {
		began := time.Now()
		if _, err := one.Update(some, "a", func(m *varve.Memory) error { m.Content = "updated"; return nil }); err != nil {
			t.Error(err)
		}
		t.Log("an update took", time.Since(began))
	}
	stop()
	wg.Wait()
}

// Once a short transaction has lost for some time, all other writers wait for it, including those of
// another process.
func TestHotBeaten(t *testing.T) {
	t.Parallel()
	c := fixture.ClockAt(time.Unix(1_700_000_000, 0))
	dir := t.TempDir()
	l := &fixture.Conflicts{Each: func() { c.Add(100 * time.Millisecond) }}
	one, two := fixture.Open(t, dir, &varve.Options{NoBackground: true, Clock: c.Now, Logger: l.Logger()}),
		fixture.Open(t, dir, &varve.Options{NoBackground: true})
	if _, err := one.Put(t.Context(), varve.Memory{ID: "a", Content: "first"}); err != nil {
		t.Fatal(err)
	}
	runs := 0
	between := 0
	_, err := one.Update(t.Context(), "a", func(m *varve.Memory) error {
		if runs++; runs > 30 {
			return errors.New("it is beaten without end")
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		if runs > 8 { // its turn has come: puts wait meanwhile until it gives up
			ctx, stop = context.WithTimeout(ctx, 10*time.Millisecond)
			defer stop()
		}
		if _, err := two.Put(ctx, varve.Memory{ID: "a", Content: "x"}); err == nil && runs > 8 {
			between++
		} else if err != nil && runs <= 8 {
			return err
		}
		m.Content = "updated"
		return nil
	})
	if err != nil || runs != 9 || between > 0 {
		t.Errorf("it ran %d times, %d puts came in between: %v", runs, between, err)
	}
}
