package processes

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/working"
)

var processScope = working.Scope{Session: "processes"}

const workGoroutines = 8

// workChild is one process of TestWorkingProcesses: its goroutines append and increment, and print what
// was acknowledged, until all is done or it is killed.
func workChild(ctx context.Context, arg, dir string) error {
	var name string
	var each int
	if _, err := fmt.Sscanf(strings.ReplaceAll(arg, ":", " "), "%s %d", &name, &each); err != nil {
		return err
	}
	st, err := varve.Open(ctx, dir, nil)
	if err != nil {
		return err
	}
	m, err := st.Working().Open(ctx, processScope, &working.Options{MaxNotes: working.Unlimited})
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	failed := make(chan error, workGoroutines)
	for g := range workGoroutines {
		wg.Go(func() {
			for i := range each {
				text := fmt.Sprintf("%s.%d %d", name, g, i)
				_, err := m.Append(ctx, text)
				if err == nil {
					_, err = m.Increment(ctx, "n", 1)
				}
				if err != nil {
					failed <- err
					return
				}
				mu.Lock()
				fmt.Println(text)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	select {
	case err := <-failed:
		return err
	default:
	}
	return st.Close()
}

// TestWorkingProcesses: 4 processes × 8 goroutines append to one scratchpad and
// increment one counter; everything is there, in one order.
func TestWorkingProcesses(t *testing.T) {
	const processes = 4
	total := 10_000
	if !proofs.Long() {
		total = 1_000
	}
	each := total/(processes*workGoroutines) + 1
	dir := t.TempDir()
	var wg sync.WaitGroup
	for p := range processes {
		cmd, out := storetest.Start(t, fmt.Sprintf("p%d:%d", p, each), dir)
		wg.Go(func() {
			_, _ = io.Copy(io.Discard, out)
			if err := cmd.Wait(); err != nil {
				t.Errorf("process %d: %v", p, err)
			}
		})
	}
	wg.Wait()
	count := checkWork(t, dir, nil)
	if want := processes * workGoroutines * each; count != want {
		t.Errorf("%d entries and increments, want %d", count, want)
	}
	t.Logf("%d entries and increments by %d processes × %d goroutines", count, processes, workGoroutines)
}

// TestWorkingKilledProcesses kills one of two processes after a while: its acknowledged operations are
// there, and the other process continues.
func TestWorkingKilledProcesses(t *testing.T) {
	dir := t.TempDir()
	killed, out := storetest.Start(t, "killed:100000", dir)
	other, silence := storetest.Start(t, "other:60", dir)
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = io.Copy(io.Discard, silence) })
	told := map[string]bool{}
	in := bufio.NewScanner(out)
	for in.Scan() {
		told[in.Text()] = true
		if len(told) == 500 { // what it had printed by then is read to the end
			if err := killed.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = killed.Wait()
	wg.Wait()
	if err := other.Wait(); err != nil {
		t.Error(err)
	}
	checkWork(t, dir, told)
}

// checkWork opens the store and checks that each entry is there once, those of a goroutine in order,
// including all that were acknowledged, and that the count equals the number of entries, or is lower by
// at most the number of goroutines that were killed between the two. It returns the count.
func checkWork(t *testing.T, dir string, told map[string]bool) int {
	t.Helper()
	st, err := varve.Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	m, err := st.Working().Open(t.Context(), processScope, nil)
	if err != nil {
		t.Fatal(err)
	}
	v, _, err := m.Get(t.Context(), "n")
	if err != nil {
		t.Fatal(err)
	}
	n, _ := v.(float64)
	notes, err := m.Notes(t.Context(), -1)
	if err != nil {
		t.Fatal(err)
	}
	last := map[string]int{}
	for i, note := range notes {
		var who string
		var at int
		if _, err := fmt.Sscanf(note.Text, "%s %d", &who, &at); err != nil || at != last[who] || i > 0 && note.Seq <= notes[i-1].Seq {
			t.Fatalf("entry %d is %q, want number %d of its writer", i, note.Text, last[who])
		}
		last[who]++
		delete(told, note.Text)
	}
	for text := range told {
		t.Errorf("%q was acknowledged, and is gone", text)
	}
	if short := len(notes) - int(n); short < 0 || short > workGoroutines || told == nil && short != 0 {
		t.Errorf("%d entries, the counter is %v", len(notes), n)
	}
	for f, err := range st.Admin().Verify(t.Context(), varve.VerifyOptions{}) {
		if err != nil || f.Severity != varve.SeverityInfo {
			t.Errorf("verify: %v %v", f, err)
		}
	}
	return len(notes)
}
