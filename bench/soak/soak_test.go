package main

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
)

func TestMain(m *testing.M) {
	for _, arg := range os.Args[1:] {
		if arg == "-child" { // one of the processes of a run below
			main()
			return
		}
	}
	os.Exit(m.Run())
}

func shortRun(t *testing.T, tampered func(st *varve.Store) error) *soak {
	t.Helper()
	s := &soak{dir: t.TempDir(), length: 6 * time.Second, every: 2 * time.Second, check: 3 * time.Second, processes: 2, goroutines: 2, seed: 1, tampered: tampered}
	if err := s.run(context.Background(), io.Discard); err != nil {
		t.Fatal(err)
	}
	return s
}

// A run of seconds finds nothing, and has killed and looked.
func TestSoak(t *testing.T) {
	s := shortRun(t, nil)
	if wrong := s.wrong(); len(wrong) > 0 {
		t.Error(wrong)
	}
	m := s.minutes[0]
	if m.kills == 0 || m.checks == 0 || len(m.commits) == 0 || m.disk == 0 {
		t.Errorf("%+v", table(s.minutes))
	}
}

// A memory that is lost behind the judge's back is found.
func TestLost(t *testing.T) {
	lost := ""
	s := shortRun(t, func(st *varve.Store) error {
		for m, err := range st.Memories(context.Background()) {
			if err != nil {
				return err
			}
			if lost == "" && strings.Contains(m.ID, ".k") {
				lost = m.ID
			}
		}
		if err := st.Delete(context.Background(), lost); !errors.Is(err, varve.ErrNotFound) { // which it is since the look before
			return err
		}
		return nil
	})
	if wrong := strings.Join(s.wrong(), "\n"); !strings.Contains(wrong, lost+` is "-", but it may only be one of`) {
		t.Errorf("%s was lost, and this was found: %s", lost, wrong)
	}
}

// Figures beyond their bounds, seconds without a commit, and growth are found.
func TestJudge(t *testing.T) {
	run := func(change func(i int, m *minute)) []*minute {
		var all []*minute
		for i := range 12 {
			m := &minute{seconds: []int{5, 5}, commits: []time.Duration{time.Millisecond}, memory: 100 << 20, elder: 100 << 20, handles: 50, disk: 500 << 20}
			change(i, m)
			all = append(all, m)
		}
		return all
	}
	l := limits{memory: 1 << 30, handles: 256, disk: 2 << 30}
	for want, change := range map[string]func(i int, m *minute){
		"":                            func(int, *minute) {},
		"1 seconds without":           func(i int, m *minute) { m.seconds[1] = max(0, 5-i) * min(1, 11-i) },
		"bytes of memory":             func(i int, m *minute) { m.memory = 100<<20 + int64(i)<<27 },
		"open files in one process":   func(i int, m *minute) { m.handles = 50 + 20*int64(i) },
		"bytes on disk":               func(i int, m *minute) { m.disk = 500<<20 + int64(i)<<28 },
		"memory of the process that ": func(i int, m *minute) { m.elder = int64(100+20*i) << 20 },
		"open files:":                 func(i int, m *minute) { m.handles = 50 + 10*int64(i) },
		"disk, MiB":                   func(i int, m *minute) { m.disk = int64(500+100*i) << 20 },
		"p50 of commits":              func(i int, m *minute) { m.commits[0] = time.Duration(1+i) * time.Millisecond },
		"p99 of commits":              func(i int, m *minute) { m.commits = append(m.commits, time.Duration(1+10*i)*time.Millisecond) },
	} {
		wrong := strings.Join(judge(run(change), l), "\n")
		if want == "" && wrong != "" || !strings.Contains(wrong, want) {
			t.Errorf("not found: %q in %q", want, wrong)
		}
	}
}
