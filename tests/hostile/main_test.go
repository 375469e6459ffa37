//go:build linux || darwin

package hostile

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/scratch"
)

var (
	seedFlag = flag.Uint64("hostile.seed", 0, "the seed of the sample; 0 makes one up")
	caseFlag = flag.String("hostile.case", "", "run only cases whose name matches, all of them")
	sizeFlag = flag.String("hostile", os.Getenv("VARVE_HOSTILE"), "full, or for how long to run")
	longest  = flag.Duration("hostile.longest", 10*time.Second, "how long a command may take; more on a busy machine")
	partFlag = flag.String("hostile.part", "", "run only this part of the cases, such as 3/16; the seed decides which")
	outFlag  = flag.String("hostile.out", "", "write all findings to this file")
)

// base is the folder of this run: the command, the boxes that are copied, their copies.
var base string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	defer scratch.Use()()
	dir, err := os.MkdirTemp("", "varve-hostile-")
	if err == nil {
		err = os.Chmod(dir, 0o755) // some cases run as another user
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	base = dir
	debug.SetMemoryLimit(largest / 4) // see mentions
	defer os.RemoveAll(dir)
	return m.Run()
}

// build builds the command that every case starts, once.
var build = sync.OnceValue(func() error {
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", memctl(), "github.com/varve-db/varve/cmd/memctl").CombinedOutput(); err != nil {
		return fmt.Errorf("building memctl: %w\n%s", err, out)
	}
	return nil
})

// needs builds what a test starts. Without a flag that requests it, the test is skipped.
func needs(t *testing.T) {
	t.Helper()
	if *sizeFlag == "" && *caseFlag == "" {
		proofs.ManyProcesses(t, "memctl is built, and every case is a process")
	}
	if err := build(); err != nil {
		t.Fatal(err)
	}
}

func memctl() string { return filepath.Join(base, "memctl") }
