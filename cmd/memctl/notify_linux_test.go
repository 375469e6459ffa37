package main

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Where inotify has no watches or instances left, status says that the files are looked at each minute, and which limit
// it is; the error of the system is that of a full disk.
func TestStatusOfAPollingWatch(t *testing.T) {
	t.Parallel()
	for limit, want := range map[string]string{"max_inotify_watches": "fs.inotify.max_user_watches", "max_inotify_instances": "fs.inotify.max_user_instances"} {
		t.Run(limit, func(t *testing.T) {
			t.Parallel()
			c := newCLI(t)
			c.ok("put", "first", "--id", "a")
			script := `echo 0 > /proc/sys/user/` + limit + ` || exit 99; exec "$@"`
			cmd := exec.Command("sh", "-c", script, "sh", memctlBinary(t), "--store", c.store(), "watch", "--adopt")
			cmd.SysProcAttr = &syscall.SysProcAttr{
				Cloneflags:  syscall.CLONE_NEWUSER,
				UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
				GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
			}
			var errOut strings.Builder
			cmd.Stdout, cmd.Stderr = io.Discard, &errOut
			if err := cmd.Start(); err != nil {
				t.Skip("no user namespace can be made: VARVE_LONG=1 on a system that allows them: " + err.Error())
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			t.Cleanup(func() {
				if ended != nil {
					_ = cmd.Process.Kill()
					<-ended
				}
			})
			for end := time.Now().Add(20 * time.Second); ; {
				status := c.ok("status")
				if strings.Contains(status, "checks all files each minute") {
					if !strings.Contains(strings.Join(strings.Fields(status), " "), want) {
						t.Errorf("status does not name %s: %s", want, status)
					}
					break
				}
				select {
				case err := <-ended:
					ended = nil
					if cmd.ProcessState.ExitCode() == 99 {
						t.Skip("the limit of a user namespace cannot be set: VARVE_LONG=1 on a system that allows it")
					}
					t.Fatalf("the watch ended: %v: %s", err, errOut.String())
				default:
				}
				if time.Now().After(end) {
					t.Fatalf("no process says that it polls: %s", status)
				}
			}
			if out := c.ok("status", "--json"); !strings.Contains(out, `"watcher_polls":"`) {
				t.Errorf("status --json: %s", out)
			}
		})
	}
}
