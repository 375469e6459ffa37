package wal

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/varve-db/varve/errs"
)

// A batch with OnTop is prepared again, to follow the newest entry of its key, whether that entry is in its group, not
// durable yet, or in the log. A batch without OnTop conflicts, and so does a batch whose precondition is not about the
// key of its entry.
func TestOnTop(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	l, m := open(t, t.TempDir())
	defer l.Close()
	b := put("k", "0")
	old, err := l.Append(ctx, b)
	if err != nil {
		t.Fatal(err)
	}
	var asked []LSN
	stale := func(value string, can bool) *Batch {
		b := put("k", value)
		b.Preconditions = []Precondition{{Key: "k", LSN: old}}
		b.OnTop = func(newest *Entry) bool {
			asked = append(asked, newest.LSN)
			b.Entries[0].Value = []byte(string(newest.Value) + value)
			return can
		}
		return b
	}
	strict := func(key string) *Batch {
		b := put(key, "!")
		b.Preconditions = []Precondition{{Key: "k", LSN: old}}
		return b
	}
	group := []*Batch{stale("1", true), stale("2", true), strict("k"), stale("3", true), stale("x", false), stale("4", true)}
	for i, err := range together(t, l, group...) {
		if refused := i == 2 || i == 4; refused != errors.Is(err, errs.ErrConflict) || !refused && err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
	if m.val["k"] != "1234" { // the first one did rest on the version that it named
		t.Errorf("the newest is %q", m.val["k"])
	}
	at := func(i int) LSN { return group[i].Entries[0].LSN }
	if want := []LSN{at(0), at(1), at(3), at(3)}; len(asked) != 4 || asked[0] != want[0] || asked[1] != want[1] || asked[2] != want[2] || asked[3] != want[3] {
		t.Errorf("they were prepared on %d, not %d", asked, want)
	}
	b = stale("5", true)
	if _, err := l.Append(ctx, b); err != nil || m.val["k"] != "12345" {
		t.Errorf("%v, the newest is %q", err, m.val["k"])
	}
	b = stale("6", true)
	b.Entries[0].Key = "other"
	if _, err := l.Append(ctx, b); !errors.Is(err, errs.ErrConflict) {
		t.Errorf("the entry of another key: %v", err)
	}
	if _, err := l.Append(ctx, &Batch{Entries: []Entry{{Key: "k", Kind: 17, Delete: true}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(ctx, stale("7", true)); !errors.Is(err, errs.ErrConflict) {
		t.Errorf("on top of a deletion: %v", err)
	}
}

// A batch whose caller has gone is not prepared again, and a caller does not leave while its batch is being
// prepared.
func TestOnTopGone(t *testing.T) {
	t.Parallel()
	q, r := &queue{}, &request{}
	began, end, started, gone := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
	var over atomic.Bool
	go r.callUnlessGone(q, func() bool { close(began); <-end; over.Store(true); return true })
	<-began
	go func() {
		close(started)
		r.ended()
		if !over.Load() {
			t.Error("the caller went")
		}
		close(gone)
	}()
	<-started
	for range 1000 {
		runtime.Gosched()
	}
	close(end)
	<-gone
	q.remove(r)
	if r.callUnlessGone(q, func() bool { return true }) {
		t.Error("it was prepared again for nobody")
	}
}
