package redis_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"

	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/working"
	"github.com/varve-db/varve/working/redis"
)

// TestProcesses: 4 processes × 8 goroutines append to one scratchpad and increment one counter; nothing
// is lost, and the order is the same for all.
func TestProcesses(t *testing.T) {
	const processes, goroutines = 4, 8
	total := 10_000
	if !proofs.Long() {
		total = 1_000
	}
	each := total/(processes*goroutines) + 1
	s := sharedServer(t)
	o := redis.Options{URL: s.url(), Prefix: fmt.Sprintf("t%d:", fixtures.Add(1))}
	self, err := os.Executable()
	ok(t, err)
	var all []*exec.Cmd
	for p := range processes {
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), "VARVE_REDIS_CHILD="+o.URL, "VARVE_REDIS_PREFIX="+o.Prefix,
			fmt.Sprint("VARVE_REDIS_NAME=", p), fmt.Sprint("VARVE_REDIS_EACH=", each))
		cmd.Stderr = os.Stderr
		ok(t, cmd.Start())
		all = append(all, cmd)
	}
	for p, cmd := range all {
		if err := cmd.Wait(); err != nil {
			t.Errorf("process %d: %v", p, err)
		}
	}
	m, err := working.Open(t.Context(), open(t, o), scope, &working.Options{MaxNotes: working.Unlimited})
	ok(t, err)
	has(t, m, "n", float64(processes*goroutines*each))
	notes, err := m.Notes(t.Context(), -1)
	ok(t, err)
	if len(notes) != processes*goroutines*each {
		t.Errorf("%d entries, want %d", len(notes), processes*goroutines*each)
	}
	last := map[string]int{}
	for i, n := range notes {
		var who string
		var at int
		if _, err := fmt.Sscanf(n.Text, "%s %d", &who, &at); err != nil || at != last[who] {
			t.Fatalf("entry %d is %q, want number %d of its writer", i, n.Text, last[who])
		}
		last[who]++
	}
	t.Logf("%d entries and increments by %d processes × %d goroutines", len(notes), processes, goroutines)
}

// child does the work of one of these processes.
func child() int {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx := context.Background()
	each, err := strconv.Atoi(os.Getenv("VARVE_REDIS_EACH"))
	if err != nil {
		return fail(err)
	}
	h, err := redis.Open(ctx, redis.Options{URL: os.Getenv("VARVE_REDIS_CHILD"), Prefix: os.Getenv("VARVE_REDIS_PREFIX")})
	if err != nil {
		return fail(err)
	}
	defer h.Close()
	m, err := working.Open(ctx, h, scope, &working.Options{MaxNotes: working.Unlimited})
	if err != nil {
		return fail(err)
	}
	var wg sync.WaitGroup
	failed := make(chan error, 8)
	for g := range 8 {
		wg.Go(func() {
			for i := range each {
				_, err := m.Append(ctx, fmt.Sprintf("%s.%d %d", os.Getenv("VARVE_REDIS_NAME"), g, i))
				if err == nil {
					_, err = m.Increment(ctx, "n", 1)
				}
				if err != nil {
					failed <- err
					return
				}
			}
		})
	}
	wg.Wait()
	select {
	case err := <-failed:
		return fail(err)
	default:
		return 0
	}
}
