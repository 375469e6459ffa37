package memorystores

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/varve-db/varve"
)

// TestMovedWhileOpening: a store whose folder is moved, or replaced by another store, while a request opens it is not
// found: it is not created again, and the other store does not answer for it.
func TestMovedWhileOpening(t *testing.T) {
	t.Parallel()
	var before atomic.Pointer[func(dir string)]
	open := func(ctx context.Context, dir string, mustExist bool) (*varve.Store, error) {
		if f := before.Swap(nil); f != nil {
			(*f)(dir)
		}
		return small(ctx, dir, mustExist)
	}
	s := newSite(t, t.TempDir(), Options{Open: open})
	rename := func(from, to string) {
		if err := os.Rename(from, filepath.Join(s.dir, to)); err != nil {
			t.Error(err)
		}
	}
	closed := func(store string) {
		t.Helper()
		if err := s.stores.drop(t.Context(), store[1:]); err != nil {
			t.Fatal(err)
		}
	}
	a, b := s.create("a"), s.create("b")
	s.memory(b, "/x", "of b")
	closed(b)
	away := func(dir string) { rename(dir, ".away") }
	before.Store(&away)
	s.want(404, "a", "GET", a+"/memories", nil)
	if _, err := os.Stat(filepath.Join(s.dir, a[1:])); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the store was created again: %v", err)
	}
	rename(filepath.Join(s.dir, ".away"), a[1:])
	s.want(200, "a", "GET", a+"/memories", nil)
	closed(a)
	replaced := func(dir string) {
		rename(dir, ".away")
		rename(filepath.Join(s.dir, b[1:]), a[1:])
	}
	before.Store(&replaced)
	s.want(404, "a", "GET", a+"/memories", nil)
	if list := s.listed(b + "/memories?view=full"); len(list) != 1 || list[0]["content"] != "of b" {
		t.Errorf("%v", list)
	}
}

// TestLeaving: a store that waits for its last request to be deleted is not found by new ones.
func TestLeaving(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), Options{})
	store := s.create("a")
	h, err := s.stores.use(t.Context(), store[1:])
	if err != nil {
		t.Fatal(err)
	}
	deleted := make(chan int)
	go func() {
		status, _ := s.do("a", "DELETE", store, nil)
		deleted <- status
	}()
	within(t, "the beginning of the deletion", 5*time.Second, func() bool {
		s.stores.mu.Lock()
		defer s.stores.mu.Unlock()
		return s.stores.open[store[1:]] == nil
	})
	s.want(404, "a", "GET", store+"/memories", nil)
	s.want(404, "a", "DELETE", store, nil)
	s.stores.release(h)
	if status := <-deleted; status != 200 {
		t.Errorf("the deletion: %d", status)
	}
	s.want(404, "a", "GET", store+"/memories", nil)
	if _, err := os.Stat(filepath.Join(s.dir, store[1:])); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the store was created again: %v", err)
	}
}

// TestWaiters: requests that wait for one store have one other store closed, however many they are.
func TestWaiters(t *testing.T) {
	t.Parallel()
	const most = 6
	var opened atomic.Int64
	s := newSite(t, t.TempDir(), Options{MostOpen: most, Open: func(ctx context.Context, dir string,
		mustExist bool) (*varve.Store, error) {
		opened.Add(1)
		return small(ctx, dir, mustExist)
	}})
	var stores []string
	for i := range most + 1 {
		stores = append(stores, s.create(fmt.Sprint(i)))
	}
	for _, store := range stores[:most] {
		s.want(200, "a", "GET", store+"/memories", nil)
	}
	before := opened.Load()
	var all sync.WaitGroup
	for range 24 {
		all.Go(func() { s.want(200, "a", "GET", stores[most]+"/memories", nil) })
	}
	all.Wait()
	for _, store := range stores[2:] {
		s.want(200, "a", "GET", store+"/memories", nil)
	}
	if n := opened.Load() - before; n != 1 {
		t.Errorf("%d stores were opened, want 1: others than the oldest were closed", n)
	}
	if n := s.stores.Opened(); n != most {
		t.Errorf("%d stores are open", n)
	}
}

// TestListeners: a use that listens ends when its store is deleted, or when another store needs its place.
func TestListeners(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), Options{MostOpen: 1})
	a, b := s.create("a"), s.create("b")
	listen := func(store string) chan struct{} {
		t.Helper()
		l, err := s.stores.Lend(t.Context(), store[1:], true)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			<-l.Ended()
			l.Release()
		}()
		return done
	}
	first := listen(a)
	s.want(200, "a", "GET", b+"/memories", nil)
	<-first
	second := listen(b)
	s.want(200, "a", "DELETE", b, nil)
	<-second
	s.want(404, "a", "GET", b, nil)
}

// waits waits until a request waits for another store to be closed.
func (s *site) waits() {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); runtime.Gosched() {
		s.stores.mu.Lock()
		n := len(s.stores.wanted)
		s.stores.mu.Unlock()
		if n > 0 {
			return
		}
	}
	s.t.Fatal("no request waits")
}

// TestOnlyListeners: a request that waits for a place gets that of a store of which only uses that listen are left,
// whether another use ends or begins to listen.
func TestOnlyListeners(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), Options{MostOpen: 1})
	a, b := s.create("a"), s.create("b")
	lend := func(store string, listens bool) *Lease {
		t.Helper()
		l, err := s.stores.Lend(t.Context(), store[1:], listens)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	wait := func(store string) (done chan struct{}) {
		done = make(chan struct{})
		go func() {
			defer close(done)
			s.want(200, "a", "GET", store+"/memories", nil)
		}()
		s.waits()
		return done
	}
	call, listening := lend(a, false), lend(a, true)
	done := wait(b)
	call.Release()
	<-listening.Ended()
	listening.Release()
	<-done

	h, err := s.stores.use(t.Context(), a[1:])
	if err != nil {
		t.Fatal(err)
	}
	done = wait(b)
	s.stores.listen(h, 1) // as Lend does behind use
	listening = &Lease{s: s.stores, h: h, listens: true}
	<-listening.Ended()
	listening.Release()
	<-done
	s.stores.mu.Lock()
	defer s.stores.mu.Unlock()
	if s.stores.closing != 0 || len(s.stores.wanted) != 0 {
		t.Errorf("%d are being closed, %d waited for", s.stores.closing, len(s.stores.wanted))
	}
}

// TestArchivedBesideLease: a store is archived beside a request that writes nothing, but not beside a write; who waits
// for either gives up when its context ends.
func TestArchivedBesideLease(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), Options{})
	a, b := s.create("a"), s.create("b")
	lend := func(store string) *Lease {
		t.Helper()
		l, err := s.stores.Lend(t.Context(), store[1:], false)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	l := lend(a)
	defer l.Release()
	s.want(200, "a", "POST", a+"/archive", nil)
	if _, err := l.Writing(t.Context()); !errors.Is(err, errArchived) {
		t.Error("archived:", err)
	}
	l = lend(b)
	defer l.Release()
	end, err := l.Writing(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.want(200, "a", "POST", b+"/archive", nil)
	}()
	for l.h.writes.TryAcquire(1) { // until the request waits
		l.h.writes.Release(1)
		runtime.Gosched()
	}
	if l.Archived() {
		t.Error("archived beside a write")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := l.Writing(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Error("behind the request:", err)
	}
	end()
	<-done
	if !l.Archived() {
		t.Error("not archived")
	}
}
