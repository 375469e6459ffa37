package storetest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/varve-db/varve/internal/scratch"

	"go.uber.org/goleak"

	"github.com/varve-db/varve/internal/proofs"
)

// Main is the TestMain of a package whose tests start their own binary again. In such a child process, it calls
// child with the job that the process was started for. child is nil if the tests start no processes. Main fails
// if a goroutine is left at the end.
func Main(m *testing.M, child func(ctx context.Context, job, dir string) error) {
	if job := os.Getenv("VARVE_CHILD"); job != "" {
		if err := child(context.Background(), job, os.Getenv("VARVE_DIR")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	remove := scratch.Use()
	// The tests, and the processes that they start, have a repair key of their own.
	state, err := os.MkdirTemp("", "varve-state-")
	if err == nil {
		err = os.Setenv("XDG_STATE_HOME", state)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(state)
		remove()
		os.Exit(code)
	}))
}

// Job is a function that a child process runs. It gets an argument and a folder.
type Job func(ctx context.Context, arg, dir string) error

// Jobs returns a function for Main that runs one of these jobs. A job is selected by its name, or by name:arg
// with an argument.
func Jobs(jobs map[string]Job) func(ctx context.Context, job, dir string) error {
	return func(ctx context.Context, job, dir string) error {
		name, arg, _ := strings.Cut(job, ":")
		run := jobs[name]
		if run == nil {
			return fmt.Errorf("no such job: %s", job)
		}
		return run(ctx, arg, dir)
	}
}

// Start starts a child process that runs job with the folder dir; see Main. It returns the process and its output.
func Start(t testing.TB, job, dir string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), "VARVE_CHILD="+job, "VARVE_DIR="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewReader(out)
}

// StartTalking starts a child process that reads further commands from its input. It returns the process, its output
// and its input. The process is killed when the test ends.
func StartTalking(t testing.TB, job, dir string) (*exec.Cmd, *bufio.Reader, io.WriteCloser) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), "VARVE_CHILD="+job, "VARVE_DIR="+dir)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, bufio.NewReader(out), in
}

// Repeat returns the number of times that a test of real processes is run. This is the value of VARVE_REPEAT if that is
// set, for example 100 for the figures in the documentation. Otherwise it is n, or, if the long tests are not
// requested, a fifth of n and at least 1.
func Repeat(t testing.TB, n int) int {
	if s := os.Getenv("VARVE_REPEAT"); s != "" {
		v, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if !proofs.Long() {
		return max(1, n/5)
	}
	return n
}

// OpenBelow returns the paths of the files below a folder that this process has open. The result is empty if the system
// does not report open files.
func OpenBelow(dir string) (names []string) {
	fds, _ := os.ReadDir("/proc/self/fd")
	for _, fd := range fds {
		if name, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(name, dir) {
			names = append(names, name)
		}
	}
	return names
}
