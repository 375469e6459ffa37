package fuzz

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"testing"

	"github.com/varve-db/varve/internal/scratch"
)

// Thousands of small stores come and go: collecting seldom takes a third off.
func TestMain(m *testing.M) {
	debug.SetGCPercent(800)
	debug.SetMemoryLimit(1 << 30) // what is collected late is nobody's reason to swap
	flag.Parse()
	_ = os.Setenv("XDG_STATE_HOME", "/state") // on disks that are simulated
	status := scratch.Around(m).Run()
	if testing.Verbose() {
		if err := reportReached(); err != nil {
			fmt.Println(err)
		}
	}
	os.Exit(status)
}
