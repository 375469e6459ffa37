package fuzz

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/varve-db/varve/internal/scratch"
)

func TestMain(m *testing.M) {
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
