package replaced

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/storetest"
)

var (
	runsFlag = flag.Int("replaced.runs", 0,
		"runs of each cell; 0: one, with VARVE_LONG=1 as many as the event has variants, at least 3")
	seedFlag = flag.Uint64("replaced.seed", 0,
		"seed of the first run of each cell, the next run has the next number; 0: 1, with VARVE_LONG=1 a new one")
	memctlFlag = flag.String("replaced.memctl", "", "the memctl to judge; empty: built from this tree")
)

// TestMain runs the tests, or, in a process that a test has started, the job of that process.
func TestMain(m *testing.M) { storetest.Main(m, jobs) }

// jobs are the jobs of the processes that the tests start.
var jobs = storetest.Jobs(map[string]storetest.Job{
	"library": func(ctx context.Context, _, dir string) error { return libraryChild(ctx, dir) },
	"chdir":   func(ctx context.Context, arg, dir string) error { return chdirChild(ctx, dir, arg) },
})

// memctl returns the path of the command, which is built once. The folder of the build is that of
// XDG_STATE_HOME, which storetest.Main removes at the end.
var memctl = sync.OnceValues(func() (string, error) {
	if *memctlFlag != "" {
		return filepath.Abs(*memctlFlag)
	}
	name := filepath.Join(os.Getenv("XDG_STATE_HOME"), "bin", "memctl")
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	args := []string{"build", "-buildvcs=false", "-ldflags=-s -w", "-o", name, "github.com/varve-db/varve/cmd/memctl"}
	out, err := exec.Command("go", args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building memctl: %w\n%s", err, out)
	}
	return name, nil
})

// memctlEnv returns the environment of a memctl process: nothing names a store or an embedding service.
func memctlEnv() []string {
	var env []string
	for _, e := range os.Environ() {
		switch name, _, _ := strings.Cut(e, "="); {
		case name == "VARVE_STORE", name == "MEMORY_FILE_PATH", strings.HasPrefix(name, "VARVE_EMBED"):
		default:
			env = append(env, e)
		}
	}
	return env
}

// patience is the deadline for everything that a test waits for.
const patience = 30 * time.Second

// now returns the time of a clock that all processes of the machine share, in nanoseconds.
func now() int64 {
	if t, ok := storetest.Monotonic(); ok {
		return t
	}
	return time.Now().UnixNano()
}
