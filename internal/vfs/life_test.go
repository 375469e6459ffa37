package vfs

import (
	"os"
	"os/exec"
	"testing"
)

func TestLifeOf(t *testing.T) {
	own := OS().Host()
	if own.Birth == 0 {
		t.Skip("processes cannot be told apart here: mount the /proc of this namespace")
	}
	parent, life := started(os.Getppid())
	if life == Unknown {
		t.Skip("the parent is of another namespace: run it outside the container")
	}
	born := own.Birth &^ 0xffffffff
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		pid   int
		birth uint64
		want  Life
	}{
		"itself":                           {own.PID, own.Birth, Alive},
		"one that had its number":          {own.PID, own.Birth ^ 1, Dead},
		"another":                          {os.Getppid(), born | uint64(uint32(parent)), life},
		"one that had the other's number":  {os.Getppid(), born | uint64(uint32(parent)^1), Dead},
		"one that has ended":               {cmd.Process.Pid, born | 7, Dead},
		"one of another place":             {cmd.Process.Pid, own.Birth ^ 1<<40, Unknown},
		"one that did not say which it is": {cmd.Process.Pid, 0, Unknown},
	} {
		if got := LifeOf(own, c.pid, c.birth); got != c.want {
			t.Errorf("%s: %d, want %d", what, got, c.want)
		}
	}
	own.Birth = 0
	if got := LifeOf(own, cmd.Process.Pid, born|7); got != Unknown {
		t.Errorf("asked by one that cannot tell: %d", got)
	}
}
