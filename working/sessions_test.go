package working_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/varve-db/varve/working"
)

func sessions(t *testing.T, h working.Home, o *working.SessionsOptions) *working.Sessions {
	t.Helper()
	s, err := working.NewSessions(h, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func id(i int) working.Scope { return working.Scope{Session: fmt.Sprint("s", i)} }

func TestSessionsEvict(t *testing.T) {
	c := newTestClock()
	h := working.NewLocal(c)
	var closed []string
	s := sessions(t, h, &working.SessionsOptions{Open: 2, Memory: working.Options{Clock: c},
		OnClose: func(ctx context.Context, m *working.Memory, why working.Reason) error {
			v, _, err := m.Get(ctx, "k") // still there
			closed = append(closed, fmt.Sprint(m.Scope().Session, " ", why, " ", v))
			return err
		}})
	use := func(i int) {
		t.Helper()
		if err := s.With(t.Context(), id(i), func(m *working.Memory) error { return m.Set(t.Context(), "k", i) }); err != nil {
			t.Fatal(err)
		}
	}
	use(1)
	use(2)
	use(1)
	use(3)
	use(4)
	if want := []string{"s2 evicted 2", "s1 evicted 1"}; !reflect.DeepEqual(closed, want) || s.Len() != 2 {
		t.Errorf("closed %v, want %v; %d open", closed, want, s.Len())
	}
	// A session in use is not closed, however long ago its use began.
	err := s.With(t.Context(), id(3), func(*working.Memory) error {
		use(5)
		use(6)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"s4 evicted 4", "s5 evicted 5"}; !reflect.DeepEqual(closed[2:], want) {
		t.Errorf("closed %v, want %v", closed[2:], want)
	}
	closed = nil
	c.advance(time.Minute)
	use(6)
	c.advance(time.Minute)
	if n, err := s.Sweep(t.Context(), 2*time.Minute); n != 1 || err != nil {
		t.Errorf("%d swept, %v", n, err)
	}
	if err := s.End(t.Context(), id(6), true); err != nil {
		t.Error(err)
	}
	use(7)
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if want := []string{"s3 idle 3", "s6 ended 6", "s7 closing 7"}; !reflect.DeepEqual(closed, want) {
		t.Errorf("closed %v, want %v", closed, want)
	}
	if err := s.With(t.Context(), id(1), func(*working.Memory) error { return nil }); !errors.Is(err, working.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	for sc := range h.Scopes(t.Context()) {
		t.Errorf("the process still holds %v", sc)
	}
}

// A session whose hook fails stays open with all its data.
func TestSessionsHookFails(t *testing.T) {
	h := working.NewLocal(nil)
	bad := errors.New("bad")
	var failed []working.Scope
	s := sessions(t, h, &working.SessionsOptions{Open: 1, OnClose: func(context.Context, *working.Memory, working.Reason) error { return bad },
		Failed: func(sc working.Scope, err error) {
			if !errors.Is(err, bad) {
				t.Error(err)
			}
			failed = append(failed, sc)
		}})
	for i := range 2 {
		if err := s.With(t.Context(), id(i), func(m *working.Memory) error { return m.Set(t.Context(), "k", i) }); err != nil {
			t.Fatal(err)
		}
	}
	if !reflect.DeepEqual(failed, []working.Scope{id(0)}) || s.Len() != 2 {
		t.Errorf("failed %v, %d open", failed, s.Len())
	}
	if n, err := s.Sweep(t.Context(), 0); n != 0 || !errors.Is(err, bad) {
		t.Errorf("%d swept, %v", n, err)
	}
	if err := s.End(t.Context(), id(0), true); !errors.Is(err, bad) {
		t.Error(err)
	}
	if err := s.Close(t.Context()); !errors.Is(err, bad) {
		t.Error(err)
	}
	n := 0
	for range h.Scopes(t.Context()) {
		n++
	}
	if n != 2 {
		t.Errorf("%d scopes are left", n)
	}
}

func TestSessionsConcurrent(t *testing.T) {
	h := working.NewLocal(nil)
	var mu sync.Mutex
	sum := map[string]int64{}
	s := sessions(t, h, &working.SessionsOptions{Open: 3, OnClose: func(ctx context.Context, m *working.Memory, _ working.Reason) error {
		n, err := m.Increment(ctx, "n", 0)
		mu.Lock()
		defer mu.Unlock()
		sum[m.Scope().Session] += n
		return err
	}})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 200 {
				err := s.With(t.Context(), id((g*7+i)%10), func(m *working.Memory) error {
					_, err := m.Increment(t.Context(), "n", 1)
					return err
				})
				if err != nil {
					t.Error(err)
				}
				if i%50 == 0 {
					if _, err := s.Sweep(t.Context(), 0); err != nil {
						t.Error(err)
					}
				}
				if i%60 == 0 {
					if err := s.End(t.Context(), id(g), true); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	total := int64(0)
	for _, n := range sum {
		total += n
	}
	if total != 8*200 {
		t.Errorf("the hooks saw %d increments of %d", total, 8*200)
	}
}

// End waits for callers that use the session.
func TestSessionsEndWaits(t *testing.T) {
	s := sessions(t, working.NewLocal(nil), nil)
	inside, leave, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		ended <- s.With(t.Context(), id(1), func(m *working.Memory) error {
			close(inside)
			<-leave
			return m.Set(t.Context(), "k", 1)
		})
	}()
	<-inside
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := s.End(ctx, id(1), true); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("End of a session in use: %v", err)
	}
	close(leave)
	if err := s.End(t.Context(), id(1), true); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if n := s.Len(); n != 0 {
		t.Errorf("%d open", n)
	}
}

func TestDrafts(t *testing.T) {
	h := working.NewLocal(newTestClock())
	scope, err := working.ForSession("s", "p", "")
	if err != nil {
		t.Fatal(err)
	}
	m, err := working.Open(t.Context(), h, scope, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.SetMany(t.Context(), map[string]any{"keep.text": "plain", "keep.list": []int{1}, "other": 1}); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one", "two"} {
		if _, err := m.Append(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	snap, err := m.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got, err := working.Drafts(scope, snap, true, "keep.*")
	if err != nil {
		t.Fatal(err)
	}
	meta := func(category, key string) map[string]any {
		all := map[string]any{"session_id": "s", "project": "p", "category": category}
		if key != "" {
			all["key"] = key
		}
		return all
	}
	want := []working.Draft{{Content: "[1]", Metadata: meta("working_memory", "keep.list")}, {Content: "plain", Metadata: meta("working_memory", "keep.text")},
		{Content: "one\ntwo\n", Metadata: meta("scratchpad", ""), Time: snap.Notes[1].Time}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if _, err := working.Drafts(scope, snap, true, "["); !errors.Is(err, working.ErrInvalid) {
		t.Error(err)
	}
}
