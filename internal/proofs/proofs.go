package proofs

import (
	"os"
	"testing"
)

// Long reports whether all cases of the proofs are run.
func Long() bool { return os.Getenv("VARVE_LONG") == "1" }

// Race reports whether this is the run with the race detector. In that run, tests of code that runs in one goroutine at
// a time (simulators and sequential calls) are skipped or shortened, because the race detector finds nothing in such
// code.
func Race() bool { return os.Getenv("VARVE_CI") == "race" && !Long() }

// Everyday reports whether this is a run of go test without settings. Such a run must take only seconds.
func Everyday() bool { return !Long() && os.Getenv("VARVE_CI") == "" }

// Share returns the number of random cases to run: all in the long proofs, and sample otherwise.
func Share(all, sample int) int {
	if Long() {
		return all
	}
	return sample
}

// Every returns a number k. A test that goes through many cases in one goroutine runs only every k-th case. k is 5
// times n in .ci/run, 8 times n in go test and under the race detector, and 1 in the long proofs.
func Every(n int) int {
	switch {
	case Long():
		return 1
	case Race(), Everyday():
		return 8 * n
	}
	return 5 * n
}

// OneGoroutine skips a test in the run with the race detector. It is for tests that read source code or run in a single
// goroutine; .ci/run also runs these without the race detector.
func OneGoroutine(t testing.TB) {
	t.Helper()
	if Race() {
		t.Skip("one goroutine: skipped under the race detector, set VARVE_LONG=1 to run it")
	}
}

// Seldom skips a test that takes long and seldom fails, except in the long run. reason names the part of the test
// that takes the time, for the message of the skipped test.
func Seldom(t testing.TB, reason string) {
	t.Helper()
	if !Long() {
		t.Skip("VARVE_LONG=1 runs it: " + reason)
	}
}

// ManyProcesses skips a test that starts many processes, in a run of go test without settings and in the run with the
// race detector. reason is the number or the type of these processes, for the message of the skipped test.
func ManyProcesses(t testing.TB, reason string) {
	t.Helper()
	if Everyday() || Race() {
		t.Skip("VARVE_LONG=1 runs it: " + reason)
	}
}
