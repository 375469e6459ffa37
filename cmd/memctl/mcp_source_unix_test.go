//go:build unix

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/mcpcmd"
	"github.com/varve-db/varve/internal/proofs"
)

// A pipe in the place of the old server's file is refused at once, and a file that may not
// be read with what helps; neither leaves a store behind.
func TestMCPSource(t *testing.T) {
	proofs.ManyProcesses(t, "every case is a process")
	t.Parallel()
	memctl, dir := memctlBinary(t), t.TempDir()
	pipe, device, closed := filepath.Join(dir, "pipe"), filepath.Join(dir, "device"), filepath.Join(dir, "closed")
	if err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.Symlink("/dev/null", device), os.WriteFile(closed, []byte("x"), 0)); err != nil {
		t.Fatal(err)
	}
	refuses := func(file string, code int, parts ...string) {
		t.Helper()
		cmd := exec.Command(memctl, "mcp")
		cmd.Env = append(os.Environ(), cli.StoreVariable+"=", mcpcmd.MemoryFileVariable+"="+file)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		hung := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
		defer hung.Stop()
		_ = cmd.Wait()
		if got := cmd.ProcessState.ExitCode(); got != code {
			t.Errorf("%s: exit code %d, want %d", file, got, code)
		}
		for _, part := range parts {
			if !strings.Contains(stderr.String(), part) {
				t.Errorf("%s: %s\nlacks %q", file, stderr.String(), part)
			}
		}
		if _, err := os.Stat(file + ".varve"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: a store was left behind: %v", file, err)
		}
	}
	refuses(pipe, cli.CodeRefused, "taking over "+pipe+": invalid: it is a pipe", "set MEMORY_FILE_PATH to the file")
	refuses(device, cli.CodeRefused, "is a link to /dev/null", "set MEMORY_FILE_PATH to its real path")
	const null = 1<<8 | 3
	if itself := filepath.Join(dir, "itself"); syscall.Mknod(itself, syscall.S_IFCHR|0o600, null) == nil { // root
		refuses(itself, cli.CodeRefused, "it is a device")
	}
	if os.Getuid() == 0 { // who may read anything: of all files these refuse
		return
	}
	refuses(closed, cli.CodePermission, "taking over "+closed, "make the file readable for the user who runs memctl")
}
