package served

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/varve-db/varve"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// place is a path at which stores follow each other.
type place struct {
	t      *testing.T
	dir    string
	opened atomic.Int64
	closed atomic.Int64
	n      int // stores that were put there
}

func (p *place) open(ctx context.Context, mustExist bool) (*varve.Store, error) {
	return varve.Open(ctx, p.dir, &varve.Options{MustExist: mustExist, NoBackground: true})
}

// replace moves away what is at the path, and puts a store there that has a memory with this text.
func (p *place) replace(text string) {
	p.t.Helper()
	p.n++
	made, away := fmt.Sprint(p.dir, "-made-", p.n), fmt.Sprint(p.dir, "-away-", p.n)
	st, err := varve.Open(p.t.Context(), made, &varve.Options{NoBackground: true})
	if err == nil {
		_, err = st.Put(p.t.Context(), varve.Memory{ID: "which", Content: text})
	}
	if err == nil {
		err = st.Close()
	}
	if err == nil {
		if err = os.Rename(p.dir, away); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err == nil {
		err = os.Rename(made, p.dir)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

func newPlace(t *testing.T) (*place, *Store) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the folder of an open store cannot be removed")
	}
	p := &place{t: t, dir: filepath.Join(t.TempDir(), "s")}
	first, err := p.open(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	s := New(first, Options{
		Open: func(ctx context.Context) (*varve.Store, error) {
			st, err := p.open(ctx, true)
			if err == nil {
				p.opened.Add(1)
			}
			return st, err
		},
		Close: func(st *varve.Store) {
			p.closed.Add(1)
			_ = st.Close() // it returns that its folder was replaced
		},
	})
	t.Cleanup(func() {
		s.End()
		s.End()
		_ = first.Close() // likewise
		if o, c := p.opened.Load(), p.closed.Load(); c != o+1 {
			t.Errorf("%d stores were opened, and with the first one %d closed", o, c)
		}
	})
	return p, s
}

func text(ctx context.Context, st *varve.Store) (string, error) {
	m, err := st.Get(ctx, "which")
	return m.Content, err
}

// Use tells that the store was replaced, Acquire takes the one that is there.
func TestExchange(t *testing.T) {
	t.Parallel()
	p, s := newPlace(t)
	p.replace("second")
	calls := 0
	err := s.Use(t.Context(), func(*varve.Store) error { calls++; return nil })
	if !errors.Is(err, varve.ErrReplaced) || !strings.Contains(err.Error(), "is served instead") || calls != 0 {
		t.Errorf("%d calls, %v", calls, err)
	}
	var got string
	if err := s.Use(t.Context(), func(st *varve.Store) (err error) {
		got, err = text(t.Context(), st)
		return err
	}); err != nil || got != "second" {
		t.Errorf("%q, %v", got, err)
	}
	p.replace("third")
	st, err := s.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := text(t.Context(), st); err != nil || got != "third" || s.Current() != st {
		t.Errorf("%q, %v", got, err)
	}
	s.Release(st)
	// A call that finds it out by itself.
	err = s.Use(t.Context(), func(st *varve.Store) error {
		p.replace("fourth")
		_, err := st.Put(t.Context(), varve.Memory{Content: "lost"})
		return err
	})
	if !errors.Is(err, varve.ErrReplaced) || s.Current() == st {
		t.Error(err)
	}
}

// While no store is at the path, each call fails and says why; the next store is found by the call that follows.
func TestNothingThere(t *testing.T) {
	t.Parallel()
	p, s := newPlace(t)
	if err := os.RemoveAll(p.dir); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := s.Acquire(t.Context()); !errors.Is(err, varve.ErrReplaced) || !errors.Is(err, varve.ErrNoStore) {
			t.Error(err)
		}
	}
	p.replace("second")
	st, err := s.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.Release(st)
	only := Only(st)
	p.replace("third")
	if _, err := only.Acquire(t.Context()); !errors.Is(err, varve.ErrReplaced) {
		t.Error(err)
	}
	s.End()
	if _, err := s.Acquire(t.Context()); !errors.Is(err, varve.ErrClosed) {
		t.Error("after its end:", err)
	}
}

// A store in use stays open, and is closed by its last release; many calls that notice at once open one store.
func TestUsed(t *testing.T) {
	t.Parallel()
	p, s := newPlace(t)
	p.replace("second")
	second, err := s.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := text(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	opened := p.opened.Load()
	p.replace("third")
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			st, err := s.Acquire(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Release(st)
			if got, err := text(t.Context(), st); err != nil || got != "third" {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	all.Wait()
	if n := p.opened.Load() - opened; n != 1 {
		t.Errorf("%d stores were opened", n)
	}
	if _, err := text(t.Context(), second); errors.Is(err, varve.ErrClosed) {
		t.Error("closed while it was in use")
	}
	s.Release(second)
	if _, err := text(t.Context(), second); !errors.Is(err, varve.ErrClosed) {
		t.Errorf("after its last use: %v", err)
	}
}

// A call that is pinned to a store gets no other one, whoever has exchanged it.
func TestPinned(t *testing.T) {
	t.Parallel()
	p, s := newPlace(t)
	first, err := s.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Release(first)
	pinned := Pinned(t.Context(), first)
	left := s.Left(first)
	calls := 0
	count := func(*varve.Store) error { calls++; return nil }
	if err := s.Use(pinned, count); err != nil || calls != 1 {
		t.Error(calls, err)
	}
	p.replace("second")
	second, err := s.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Release(second)
	select {
	case <-left:
	default:
		t.Error("whoever listens to the first one is not told")
	}
	if err := s.Use(pinned, count); !errors.Is(err, varve.ErrReplaced) || calls != 1 {
		t.Error(calls, err)
	}
	if st, err := s.Acquire(pinned); !errors.Is(err, varve.ErrReplaced) {
		t.Error(st, err)
	}
	p.replace("third")
	if st, err := s.Acquire(Pinned(t.Context(), second)); !errors.Is(err, varve.ErrReplaced) {
		t.Error("exchanged by the call itself:", st, err)
	}
	if err := s.Use(t.Context(), count); err != nil || calls != 2 {
		t.Error(calls, err)
	}
}

// End does not wait for an opening that lasts.
func TestEndCancels(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the folder of an open store cannot be removed")
	}
	p := &place{t: t, dir: filepath.Join(t.TempDir(), "s")}
	st, err := p.open(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }() // it returns that its folder was replaced
	opening := make(chan struct{})
	s := New(st, Options{Open: func(ctx context.Context) (*varve.Store, error) {
		close(opening)
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	p.replace("second")
	ended := make(chan error)
	go func() {
		_, err := s.Acquire(t.Context())
		ended <- err
	}()
	<-opening
	s.End()
	if err := <-ended; !errors.Is(err, varve.ErrReplaced) || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Calls beside exchanges: each gets a store that is open, or is told.
func TestMany(t *testing.T) {
	t.Parallel()
	p, s := newPlace(t)
	p.replace("0")
	done := make(chan struct{})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				err := s.Use(t.Context(), func(st *varve.Store) error {
					_, err := text(t.Context(), st)
					return err
				})
				if errors.Is(err, varve.ErrClosed) && !errors.Is(err, varve.ErrReplaced) {
					t.Error(err)
				}
			}
		})
	}
	for i := range 5 {
		p.replace(string(rune('a' + i)))
	}
	close(done)
	all.Wait()
}
