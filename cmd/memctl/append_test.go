package main

import (
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/varve-db/varve/internal/proofs"
)

// Processes that append to one memory at once lose no text.
func TestAppendProcesses(t *testing.T) {
	proofs.ManyProcesses(t, "every append is a process")
	t.Parallel()
	c := newCLI(t)
	c.ok("put", "begin", "--id", "log")
	memctl, err := exec.LookPath("memctl")
	if err != nil {
		t.Fatal(err)
	}
	const writers, each = 4, 6
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				cmd := exec.Command(memctl, "put", fmt.Sprintf("line %d.%d", w, i), "--append", "log", "--store", c.store())
				var notes strings.Builder
				cmd.Stderr = &notes
				out, err := cmd.Output()
				if err != nil || string(out) != "log\n" {
					t.Errorf("%v: %s%s", err, out, notes.String())
				}
				for line := range strings.Lines(notes.String()) { // one may wait for another one's flush, and says so
					if !strings.HasPrefix(line, "memctl: note: waited for a lock") {
						t.Errorf("on stderr: %s", notes.String())
					}
				}
			}
		})
	}
	all.Wait()
	lines := strings.Split(c.ok("get", "log", "--content"), "\n")
	seen := map[string]int{}
	for _, line := range lines {
		seen[line]++
	}
	if len(lines) != 1+writers*each || len(seen) != len(lines) {
		t.Errorf("%d lines, %d of them different, want %d: %q", len(lines), len(seen), 1+writers*each, lines)
	}
}
