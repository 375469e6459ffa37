package fswatch

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/varve-db/varve/wal"
)

// noted records the calls that a session makes, and when.
type noted struct {
	mu     sync.Mutex
	began  time.Time
	log    []string
	absent map[string]bool
}

func (f *noted) say(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = append(f.log, fmt.Sprintf("%d ms: ", time.Since(f.began).Milliseconds())+fmt.Sprintf(format, args...))
}

func (f *noted) set(name string, absent bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.absent[name] = absent
}

func (f *noted) gone(names []string) (list []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range names {
		if f.absent[n] {
			list = append(list, n)
		}
	}
	return list
}

func (f *noted) LookNow(_ context.Context, folder string, names []string) (absent, emptied []string, _ error) {
	f.say("look %s %s", folder, strings.Join(names, " "))
	if slices.Contains(names, "slow") {
		time.Sleep(2 * time.Second)
	}
	for _, name := range names {
		if until, ok := strings.CutPrefix(name, "emptied until "); ok {
			if d, err := time.ParseDuration(until); err != nil || time.Since(f.began) < d {
				emptied = append(emptied, name)
			}
		}
	}
	return f.gone(names), emptied, nil
}

func (f *noted) Gone(_ context.Context, _ string, absent []string) ([]string, error) {
	return f.gone(absent), nil
}

func (f *noted) Settle(_ context.Context, folder string, ids []string) error {
	f.say("settle %s %s", folder, strings.Join(ids, " "))
	return nil
}

func (f *noted) Restore(context.Context, string) error { return nil }

func (f *noted) Suspects(context.Context, string) iter.Seq2[string, error] {
	return func(func(string, error) bool) {}
}
func (f *noted) Missing(_ context.Context, _ string, dirs []string) ([]string, error) {
	if slices.Contains(dirs, "x") {
		return f.gone([]string{"x/a", "x/b"}), nil
	}
	return nil, nil
}
func (f *noted) Lead(context.Context) (func(), error) { return func() {}, nil }
func (f *noted) Folders() []string                    { return []string{"m"} }
func (f *noted) Path(folder string) string            { return folder }
func (f *noted) Polls(wal.PollCause)                  {}
func (f *noted) Report(note string, err error)        { f.say("%s: %v", note, err) }

// TestSession verifies that a file is checked when it has been quiet for 300 ms, and a file that is never quiet after
// three seconds. Files that are deleted one after the other are settled together, once no more were deleted for a
// while.
func TestSession(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do   func(f *noted, tell func(name string))
		want []string
	}{
		"quiet": {func(_ *noted, tell func(string)) {
			tell("a")
			time.Sleep(200 * time.Millisecond)
			tell("a")
			tell("b")
			time.Sleep(time.Second)
		}, []string{"500 ms: look m a b"}},
		"never quiet": {func(_ *noted, tell func(string)) {
			for range 36 {
				tell("a")
				time.Sleep(90 * time.Millisecond)
			}
			time.Sleep(time.Second)
		}, []string{"3000 ms: look m a", "3460 ms: look m a"}},
		"gone one by one": {func(f *noted, tell func(string)) {
			for i := range 30 {
				f.set(fmt.Sprint("k", i), true)
				tell(fmt.Sprint("k", i))
				time.Sleep(200 * time.Millisecond)
			}
			time.Sleep(5 * time.Second)
		}, nil},
		"gone and back": {func(f *noted, tell func(string)) {
			f.set("a", true)
			tell("a")
			time.Sleep(1200 * time.Millisecond)
			f.set("a", false)
			time.Sleep(5 * time.Second)
		}, []string{"300 ms: look m a"}},
		"gone from a folder before it was watched": {func(f *noted, tell func(string)) {
			f.set("x/a", true)
			tell("x/")
			time.Sleep(5 * time.Second)
		}, []string{"300 ms: look m x", "400 ms: look m x/a", "2400 ms: settle m x/a"}},
		"emptied": {func(_ *noted, tell func(string)) {
			tell("emptied until 500ms")
			tell("b")
			time.Sleep(5 * time.Second)
		}, []string{"300 ms: look m b emptied until 500ms", "600 ms: look m emptied until 500ms"}},
		"gone": {func(f *noted, tell func(string)) {
			f.set("a", true)
			tell("a")
			time.Sleep(5 * time.Second)
		}, []string{"300 ms: look m a", "2300 ms: settle m a"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := New(Options{}).o
				src := Told{make(chan event)}
				f := &noted{began: time.Now(), absent: map[string]bool{}}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() {
					defer close(done)
					newSession(&o, f, src, f.Folders()).run(ctx)
				}()
				c.do(f, func(name string) {
					name, entered := strings.CutSuffix(name, "/")
					src.c <- event{folder: "m", name: name, entered: entered}
				})
				cancel()
				<-done
				if name == "gone one by one" {
					settled := slices.DeleteFunc(slices.Clone(f.log), func(s string) bool { return !strings.Contains(s, "settle") })
					if len(settled) != 1 || strings.Count(settled[0], " k") != 30 {
						t.Errorf("%q", settled)
					}
					return
				}
				if !slices.Equal(f.log, c.want) {
					t.Errorf("%q, want %q", f.log, c.want)
				}
			})
		})
	}
}
