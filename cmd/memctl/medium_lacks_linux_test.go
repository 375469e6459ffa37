package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// TestReadOnlyMediumLacks: a clone, or a store that has lost what can be made again, on a medium that
// cannot be written, can be read, searched, verified and backed up as well. What it lacks is made for
// the command, elsewhere, and nothing of it is left behind.
func TestReadOnlyMediumLacks(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("memctl")
	if err != nil {
		t.Fatal(err)
	}
	made := newCLI(t)
	made.ok("put", "before", "--id", "a", "--embedding", "[1,0,0]")
	made.ok("put", "the harbour at night", "--id", "a", "--embedding", "[1,0,0]")
	made.ok("put", "another", "--id", "b", "--embedding", "[0,1,0]")
	made.ok("assembly", "put", "--id", "trip", "a", "b")
	made.ok("flush")
	for name, lacks := range map[string][]string{
		"no log":        {"wal"},
		"no index":      {"memory_index.json"},
		"no checkpoint": {"checkpoint"},
		"neither":       {"wal", "memory_index.json", "checkpoint"},
		"no folder":     {"assemblies", "wal"},
		"a clone":       {"wal", "tmp", "backups", "vector_index", "view_index", "checkpoint", "memory_index.json", "memory_index.delta.json", "quarantine"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			c := &inProcess{t, dir}
			if out, err := exec.Command("cp", "-r", made.store(), c.store()).CombinedOutput(); err != nil {
				t.Fatal(string(out))
			}
			for _, l := range lacks {
				if err := os.RemoveAll(filepath.Join(c.store(), l)); err != nil {
					t.Fatal(err)
				}
			}
			temp := filepath.Join(dir, "temp")
			if err := os.Mkdir(temp, 0o700); err != nil {
				t.Fatal(err)
			}
			memctl := func(args ...string) (int, string) {
				t.Helper()
				script := `exec "$@"`
				if os.Getuid() == 0 {
					script = `mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" || exit 99; shift; exec "$@"`
					args = append([]string{c.store(), program}, args...)
				} else {
					args = append([]string{program}, args...)
				}
				cmd := exec.Command("/bin/sh", append([]string{"-c", script, "sh"}, args...)...)
				cmd.Dir, cmd.Env = dir, append(os.Environ(), "TMPDIR="+temp)
				if os.Getuid() == 0 {
					cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
				}
				out, err := cmd.CombinedOutput()
				if cmd.ProcessState == nil {
					t.Fatal(err)
				}
				return cmd.ProcessState.ExitCode(), string(out)
			}
			if os.Getuid() != 0 {
				if err := os.Chmod(c.store(), 0o500); err != nil {
					t.Fatal(err)
				}
				defer os.Chmod(c.store(), 0o700)
			}
			before := quoted(t, tree(t, c.store()))
			copied := filepath.Join(dir, "copy")
			for _, r := range []struct {
				args []string
				code int
				want string
			}{
				{[]string{"get", "a", "--content"}, cli.CodeOK, "the harbour at night"}, {[]string{"list"}, cli.CodeOK, "another"},
				{[]string{"search", "harbour"}, cli.CodeOK, "harbour at night"}, {[]string{"search", "--vector", "[1,0,0]", "-n", "1"}, cli.CodeOK, "harbour at night"},
				{[]string{"history", "a"}, -1, "sha256"}, {[]string{"assembly", "list"}, cli.CodeOK, ""},
				{[]string{"verify"}, -1, "2 memories"}, {[]string{"status"}, -1, "changes are refused"}, // the vectors are of the log that is gone

				{[]string{"backup", copied}, cli.CodeOK, "is complete"}, {[]string{"put", "x"}, cli.CodePermission, ""}, {[]string{"rm", "a"}, cli.CodePermission, ""},
			} {
				code, out := memctl(append(r.args, "--store", c.store())...)
				if r.code >= 0 && code != r.code || !strings.Contains(out, r.want) {
					t.Errorf("%q: exit code %d, want %d and %q: %s", r.args, code, r.code, r.want, out)
				}
			}
			if after := quoted(t, tree(t, c.store())); after != before {
				t.Errorf("the tree has changed:\n%s\n%s", before, after)
			}
			if left, _ := os.ReadDir(temp); len(left) > 0 {
				t.Error(left)
			}
			restored := filepath.Join(dir, "restored")
			if out := c.ok("restore", copied, restored); regexp.MustCompile(`\b1970\b`).MatchString(out) { // and not in the folder's random name
				t.Error(out)
			}
			if got := c.ok("get", "a", "--content", "--store", restored); got != "the harbour at night" {
				t.Error(got)
			}
		})
	}
}
