package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/graph"
)

// Who makes relations while a deletion keeps the makers waiting may give up, and so may a
// deletion that waits for the makers.
func TestMakersAndWhoGivesUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st, beside := openStore(t, dir, nil), openStore(t, dir, nil)
	s := &server{st: st, o: Options{Clock: time.Now}, making: semaphore.NewWeighted(makers)}
	ended := func(what string, f func() error) {
		t.Helper()
		done := make(chan error, 1)
		go func() { done <- f() }()
		select {
		case err := <-done:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", what, err)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("%s waits though it was given up", what)
		}
	}
	hub := graph.Relation{From: "hub", To: "x", Type: "r"}

	ctx, giveUp := context.WithCancel(t.Context())
	if !s.making.TryAcquire(makers) { // as a deletion does that does not get through
		t.Fatal("somebody makes relations")
	}
	time.AfterFunc(20*time.Millisecond, giveUp)
	ended("making", func() error { _, err := s.createRelations(ctx, []graph.Relation{hub}); return err })
	s.making.Release(makers)

	// Each look at the graph sees one more relation of the name put behind it.
	ctx, giveUp = context.WithCancel(t.Context())
	defer giveUp()
	var put atomic.Int64
	s.view = newView(st, defaultGraphBytes, func(err error) { t.Error(err) }, func() time.Time {
		if ctx.Err() == nil {
			hub.To = fmt.Sprint(put.Add(1))
			if _, err := beside.Put(t.Context(), hub.Memory(time.Now(), nil)); err != nil {
				t.Error(err)
			}
		}
		return time.Now()
	})
	if !s.making.TryAcquire(1) { // as who makes one and does not come to an end
		t.Fatal("somebody keeps the makers waiting")
	}
	go func() {
		for ctx.Err() == nil && s.making.TryAcquire(1) { // the deletion does not wait yet
			s.making.Release(1)
			time.Sleep(time.Millisecond)
		}
		giveUp()
	}()
	ended("deleting", func() error { return s.deleteEntities(ctx, []string{"hub"}) })
	s.making.Release(1)
	if n, err := st.Count(t.Context(), varve.WithPrefix(graph.RelationPrefix)); int64(n) != put.Load() || n < pushTries-1 || err != nil {
		t.Errorf("%d relations of %d, %v", n, put.Load(), err)
	}
	// Nobody is kept waiting, and the next deletion takes all along.
	if err := s.deleteEntities(t.Context(), []string{"hub"}); err != nil || !s.making.TryAcquire(makers) {
		t.Error(err)
	}
	if n, err := st.Count(t.Context(), varve.WithPrefix(graph.RelationPrefix)); n != 0 || err != nil {
		t.Errorf("%d relations, %v", n, err)
	}
}
