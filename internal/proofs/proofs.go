package proofs

import (
	"os"
	"testing"
)

// Long reports whether all cases of the proofs are run.
func Long() bool { return os.Getenv("VARVE_LONG") == "1" }

// Race reports whether this is the run with the race detector, which finds nothing in code that one
// goroutine runs at a time: simulators, and sequential calls.
func Race() bool { return os.Getenv("VARVE_CI") == "race" && !Long() }

// Everyday reports whether this is a run of go test without settings, which must take only seconds.
func Everyday() bool { return !Long() && os.Getenv("VARVE_CI") == "" }

// Share returns how many random cases run: all of them in the long proofs, otherwise few.
func Share(all, few int) int {
	if Long() {
		return all
	}
	return few
}

// Every returns a number k: of many cases, which one goroutine goes through, every k-th runs. k is 5n in .ci/run, 8n in
// go test and under the race detector, and 1 in the long proofs.
func Every(n int) int {
	switch {
	case Long():
		return 1
	case Race(), Everyday():
		return 8 * n
	}
	return 5 * n
}

// OneGoroutine skips a test under the race detector that reads source or runs sequentially in its own
// goroutine: .ci/run has run it without the race detector.
func OneGoroutine(t testing.TB) {
	t.Helper()
	if Race() {
		t.Skip("VARVE_LONG=1 runs it: one goroutine, under the race detector")
	}
}

// Seldom skips a test that takes long and seldom fails, except in the long run; why says what takes the time.
func Seldom(t testing.TB, why string) {
	t.Helper()
	if !Long() {
		t.Skip("VARVE_LONG=1 runs it: " + why)
	}
}

// ManyProcesses skips a test that starts too many processes for a run of go test without settings; why says how
// many, or which.
func ManyProcesses(t testing.TB, why string) {
	t.Helper()
	if Everyday() || Race() {
		t.Skip("VARVE_LONG=1 runs it: " + why)
	}
}
