package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// A process of another PID namespace, as in a container, is not reported by its number as one of this namespace: there
// is another process of that number here, or none.
func TestProcessOfAnotherNamespace(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.ok("put", "first", "--id", "a")
	unshare, err := exec.LookPath("unshare")
	if err != nil || os.Getuid() != 0 {
		t.Skip("no PID namespace can be made; TestAttachedElsewhere has one: VARVE_LONG=1 as root")
	}
	// The shell is process 1 there, memctl one of a small number that exists here too.
	cmd := exec.Command(unshare, "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", `true & wait; "$@"; :`, "sh",
		memctlBinary(t), "--store", c.store(), "watch", "--adopt", "--json")
	cmd.Env = append(os.Environ(), cli.StoreVariable+"="+c.store())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skip("no PID namespace: VARVE_LONG=1 as root: " + err.Error())
	}
	lines := make(chan struct{})
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(out); s.Scan(); {
		}
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-lines
		_ = cmd.Wait()
	})
	for end := time.Now().Add(20 * time.Second); ; {
		status := c.ok("status")
		if strings.Contains(status, "registered but not visible from here") {
			if !strings.Contains(status, "of another PID namespace, with the ids [") {
				t.Errorf("status: %s", status)
			}
			break
		}
		select {
		case <-lines:
			t.Skip("no PID namespace can be made here: VARVE_LONG=1 as root")
		default:
		}
		if time.Now().After(end) {
			t.Fatalf("the process does not appear, or as one of this namespace: %s", status)
		}
	}
	code, out2, errOut := c.run("", "migrate", "--to", filepath.Join(c.dir, "moved"), "--switch", "--wait", "100ms")
	if code != cli.CodeLocked || !strings.Contains(errOut,
		"in another PID namespace (such as a container; stop it there)") {
		t.Errorf("migrate: exit code %d: %s%s", code, errOut, out2)
	}
	if _, document, _ := c.run("", "status", "--json"); !strings.Contains(document, `"processes":[]`) || !strings.Contains(document, `"processes_unseen":[`) {
		t.Errorf("status --json: %s", document)
	}
}
