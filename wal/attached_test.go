package wal

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/varve-db/varve/internal/vfs"
)

// A process that dies while another one handles the leftovers of dead processes stays on the list, so that its
// pool in tmp/ does not stay until the next recovery of the log.
func TestBuryOnlyThoseLookedAfter(t *testing.T) {
	t.Parallel()
	l, _ := open(t, t.TempDir())
	defer l.Close()
	if l.host.Birth == 0 {
		t.Skip("processes cannot be told apart here: mount the /proc of this namespace")
	}
	die := func() int {
		t.Helper()
		cmd := exec.Command(os.Args[0], "-test.run=^$")
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
		l.shared.Claim(vfs.Host{PID: cmd.Process.Pid, Birth: l.host.Birth&^0xffffffff | 7}, 0)
		return cmd.Process.Pid
	}
	die()
	dead := l.Processes().Dead()
	late := die()
	held := mustHold(t, l)
	defer held.Unlock()
	if err := l.Processes().RemoveDead(held, dead); err != nil {
		t.Fatal(err)
	}
	if left := l.Processes().Dead(); len(dead) != 1 || len(left) != 1 || left[0].PID != late {
		t.Errorf("looked after %v, then dead on the list: %v, not %d", dead, left, late)
	}
	if err := l.Processes().RemoveDead(held, l.Processes().Dead()); err != nil {
		t.Fatal(err)
	}
	if left := l.Processes().All(); len(left) != 1 || left[0].PID != os.Getpid() {
		t.Errorf("attached: %v", left)
	}
}

// A process of another PID namespace is recognised, even if it has there the id that this process has here.
func TestAttachedElsewhere(t *testing.T) {
	t.Parallel()
	l, _ := open(t, t.TempDir())
	defer l.Close()
	if l.host.Birth == 0 {
		t.Skip("processes cannot be told apart here: mount the /proc of this namespace")
	}
	l.shared.Claim(vfs.Host{PID: os.Getpid(), Birth: l.host.Birth ^ 1<<40}, 0)
	l.shared.Claim(vfs.Host{PID: 1, Birth: l.host.Birth ^ 1<<40}, 0)
	here, away := 0, 0
	for _, a := range l.Processes().All() {
		if !a.Elsewhere {
			here++
			continue
		}
		if away++; a.Life != vfs.Unknown || a.Command() != "" || !strings.Contains(a.String(), "another PID namespace") {
			t.Errorf("%+v: %v, of the program %q", a, a, a.Command())
		}
	}
	if here != 1 || away != 2 {
		t.Errorf("%d processes here, %d elsewhere, want 1 and 2", here, away)
	}
	if h := l.process(1); h.Command != "" || !strings.Contains(h.String(), "another PID namespace") {
		t.Errorf("the holder of a lock: %v", h)
	}
	if l.elsewhere(os.Getpid()) {
		t.Error("this process is elsewhere")
	}
}
