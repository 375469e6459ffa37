package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// shell runs a script of sh with the program of memctl as $0, and gives its exit code and stderr.
func (c *inProcess) shell(script string, args ...string) (code int, errOut string) {
	c.t.Helper()
	cmd := exec.Command("sh", append([]string{"-c", script, memctlBinary(c.t)}, args...)...)
	cmd.Env = append(os.Environ(), cli.StoreVariable+"="+c.store())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		c.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), stderr.String()
}

// A put that is durable and ends with another status than 0 says that it is durable and must not be repeated, whatever
// failed afterwards: a full stdout, a pipe without a reader, a file that cannot be put in place, open
// files that ran out.
func TestDurablePutSaysSo(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.ok("put", "first", "--id", "a")
	told := func(what string, code int, errOut, id string) {
		t.Helper()
		if code == 0 || !strings.Contains(errOut, "the change is committed and durable, do not repeat it") {
			t.Errorf("%s: exit code %d: %s", what, code, errOut)
		}
		for _, s := range []string{"run the command again", "nothing was written", "retry"} {
			if strings.Contains(errOut, s) {
				t.Errorf("%s: advice that leads to a second copy: %s", what, errOut)
			}
		}
		if out := c.ok("get", id, "--content"); out != "text" {
			t.Errorf("%s: %q is stored", what, out)
		}
	}
	for i, script := range []string{
		`exec "$0" put text --id "$1" >/dev/full`, `exec "$0" put text --id "$1" --json >/dev/full`,
		`mkfifo "$2"; exec 3<>"$2" 4>"$2" 3<&-; exec "$0" put text --id "$1" >&4`,
	} {
		id := fmt.Sprint("out", i)
		code, errOut := c.shell(script, id, filepath.Join(c.dir, id))
		told(script, code, errOut, id)
	}

	// The fewer files may be open, the earlier a put fails: at first before it is durable.
	committed := 0
	for limit := 8; limit < 64; limit++ {
		id := fmt.Sprint("limit", limit)
		code, errOut := c.shell(fmt.Sprintf(`ulimit -n %d; exec "$0" put text --id "$1"`, limit), id)
		if found, _, _ := c.run("", "get", id); found != 0 {
			if code == 0 {
				t.Fatalf("%d files: exit code 0, and nothing is stored: %s", limit, errOut)
			}
			continue
		}
		if code == 0 {
			break
		}
		committed++
		told(fmt.Sprintf("%d open files", limit), code, errOut, id)
	}
	if committed == 0 {
		t.Error("no limit of open files let a put be durable and its file not be written")
	}

	file, place := filepath.Join(c.dir, "mounted"), filepath.Join(c.store(), "memories", "a.json")
	writeFile(t, file, "")
	if err := bindMount(file, place); err != nil {
		return // not as root; TestDurableAndFailed has EBUSY and the others on a simulated file system
	}
	code, errOut := c.shell(`exec "$0" put text --id a`)
	if err := unmount(place); err != nil {
		t.Fatal(err)
	}
	told("a file that is mounted", code, errOut, "a")
}
