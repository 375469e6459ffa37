//go:build !(linux && amd64)

package main

import (
	"os/exec"
	"testing"
	"time"
)

// startShifted is only for machines whose vDSO a test can replace.
func startShifted(t *testing.T, _ *exec.Cmd, _ time.Duration) {
	t.Helper()
	t.Skip("the clock of another process can be shifted on linux/amd64 only")
}
