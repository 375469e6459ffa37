package proofs

import (
	"os"
	"testing"
)

// Long says that the proofs run whole.
func Long() bool { return os.Getenv("VARVE_LONG") == "1" }

// ManyProcesses skips a test that starts so many processes that it is not for every day; why
// says how many, or of what.
func ManyProcesses(t testing.TB, why string) {
	t.Helper()
	if !Long() && os.Getenv("VARVE_CI") != "1" {
		t.Skip("VARVE_LONG=1 runs it: " + why)
	}
}
