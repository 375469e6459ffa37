package watching

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// Updates of one memory do not wait for each other's sync: the next function gets what is written. Its
// result is returned only after the sync: no value, no error, and not that there is nothing to write. If
// the sync fails, that is the answer.
//
// The test examines the stacks of all goroutines, so it runs before the parallel tests.
func TestUpdateFollows(t *testing.T) {
	own := errors.New("its own")
	for name, c := range map[string]struct {
		says error
		sync error
	}{
		"write":              {},
		"skip":               {says: varve.ErrSkip},
		"error":              {says: own},
		"write, sync failed": {sync: errors.New("the disk is gone")},
		"skip, sync failed":  {says: varve.ErrSkip, sync: errors.New("the disk is gone")},
		"error, sync failed": {says: own, sync: errors.New("the disk is gone")},
	} {
		t.Run(name, func(t *testing.T) {
			var hold atomic.Bool
			gate := make(chan struct{})
			fsys := wrap.New(vfs.OS(), func(op *wrap.Op, call func() error) error {
				if hold.Load() && op.Kind == wrap.Datasync && strings.Contains(op.Path, "wal") {
					<-gate
					if c.sync != nil {
						return c.sync
					}
				}
				return call()
			})
			st, err := varve.Open(t.Context(), t.TempDir(),
				storetest.In(&varve.Options{NoBackground: true, LockWait: 100 * time.Millisecond},
					storetest.Environment{System: vfs.System{FS: fsys}}))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = st.Close() })
			if _, err := st.Put(t.Context(), varve.Memory{ID: "a", Content: "0"}); err != nil {
				t.Fatal(err)
			}
			var first, second varve.Memory
			var errs [2]error
			begin, ran, done := make(chan struct{}), make(chan struct{}), make(chan struct{}, 2)
			runs := 0
			go func() {
				defer func() { done <- struct{}{} }()
				first, errs[0] = st.Update(t.Context(), "a", func(m *varve.Memory) error {
					if runs++; runs == 1 { // after one defeat it takes the memory's turn
						if _, err := st.Put(t.Context(), varve.Memory{ID: "a", Content: "1"}); err != nil {
							return err
						}
					} else {
						hold.Store(true)
						close(begin)
						for runtime.Gosched(); !waitsIn("commit.(*turn).wait"); runtime.Gosched() {
						}
					}
					m.Content += "+"
					return nil
				})
			}()
			<-begin
			var released atomic.Bool
			var saw uint64
			go func() {
				defer func() { done <- struct{}{} }()
				second, errs[1] = st.Update(t.Context(), "a", func(m *varve.Memory) error {
					if m.Content != "1+" {
						t.Errorf("it got %q", m.Content)
					}
					saw = m.Version
					m.Content += "+"
					close(ran)
					return c.says
				})
				if !released.Load() {
					t.Errorf("it was told before the sync: %v", errs[1])
				}
			}()
			<-ran
			for range 10_000 {
				runtime.Gosched()
			}
			released.Store(true)
			close(gate)
			<-done
			<-done
			if c.sync != nil {
				if errs[0] == nil || errs[1] == nil || errors.Is(errs[1], own) {
					t.Errorf("the sync failed, they say %v", errs)
				}
				hold.Store(false)
				return
			}
			if errs[0] != nil || first.Content != "1+" || first.Version != saw {
				t.Errorf("%v, %q, version %d, the second got %d", errs[0], first.Content, first.Version, saw)
			}
			want := "1++"
			switch {
			case errors.Is(c.says, own):
				if !errors.Is(errs[1], own) {
					t.Errorf("it says %v", errs[1])
				}
				want = "1+"
			case c.says != nil:
				want = "1+"
				fallthrough
			default:
				if errs[1] != nil || second.Content != want && c.says == nil {
					t.Errorf("%v, %q", errs[1], second.Content)
				}
			}
			if m, err := st.Get(context.Background(), "a"); err != nil || m.Content != want {
				t.Errorf("%v, there is %q", err, m.Content)
			}
		})
	}
}

// waitsIn reports whether a goroutine is in a function.
func waitsIn(name string) bool {
	buf := make([]byte, 4<<20)
	return strings.Contains(string(buf[:runtime.Stack(buf, true)]), name)
}

// An update of a memory whose deletion is not durable yet waits for that, and does not poll meanwhile.
func TestUpdateAfterDeletion(t *testing.T) {
	var hold atomic.Bool
	gate, held := make(chan struct{}), make(chan struct{}, 8)
	fsys := wrap.New(vfs.OS(), func(op *wrap.Op, call func() error) error {
		if hold.Load() && op.Kind == wrap.Datasync && strings.Contains(op.Path, "wal") {
			held <- struct{}{}
			<-gate
		}
		return call()
	})
	l := &fixture.Conflicts{}
	runs := 0
	l.Each = func() { runs++ }
	st, err := varve.Open(t.Context(), t.TempDir(),
		storetest.In(&varve.Options{NoBackground: true, Logger: l.Logger()},
			storetest.Environment{System: vfs.System{FS: fsys}}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	if _, err := st.Put(t.Context(), varve.Memory{ID: "a", Content: "0"}); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 2)
	tries := 0
	_, err = st.Update(t.Context(), "a", func(m *varve.Memory) error {
		switch tries++; tries {
		case 1: // after one defeat it takes the memory's turn
			if _, err := st.Put(t.Context(), varve.Memory{ID: "a", Content: "1"}); err != nil {
				return err
			}
		case 2:
			hold.Store(true)
			go func() { done <- st.Delete(t.Context(), "a") }()
			<-held
			go func() {
				for runtime.Gosched(); !waitsIn("wal.(*FileLog).Settle"); runtime.Gosched() {
				}
				for range 10_000 {
					runtime.Gosched()
				}
				hold.Store(false)
				close(gate)
			}()
		default:
			t.Error("it got a memory that is gone")
		}
		m.Content += "+"
		return nil
	})
	if !errors.Is(err, varve.ErrNotFound) || tries != 2 || runs > 3 {
		t.Errorf("%v, after %d calls and %d runs", err, tries, runs)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
