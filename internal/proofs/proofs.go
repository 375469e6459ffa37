package proofs

import (
	"os"
	"testing"
)

// Long reports whether the proofs run whole.
func Long() bool { return os.Getenv("VARVE_LONG") == "1" }

// Race reports whether this is the run with the race detector, which finds nothing in what one goroutine
// does at a time: simulators, and calls one after the other.
func Race() bool { return os.Getenv("VARVE_CI") == "race" && !Long() }

// Everyday reports whether this is go test alone, which has to end soon.
func Everyday() bool { return !Long() && os.Getenv("VARVE_CI") == "" }

// Every returns which share of many cases runs, of those that one goroutine goes through: each 3nth in
// .ci/run, each 8nth in go test and under the race detector, all of them in the long proofs.
func Every(n int) int {
	switch {
	case Long():
		return 1
	case Race(), Everyday():
		return 8 * n
	}
	return 3 * n
}

// OneGoroutine skips a test under the race detector that reads source or does one thing after the
// other, in no other goroutine than its own: .ci/run has run it without.
func OneGoroutine(t testing.TB) {
	t.Helper()
	if Race() {
		t.Skip("VARVE_LONG=1 runs it: one goroutine, under the race detector")
	}
}

// Seldom skips a test that takes long and seldom fails; why says what it takes.
func Seldom(t testing.TB, why string) {
	t.Helper()
	if !Long() {
		t.Skip("VARVE_LONG=1 runs it: " + why)
	}
}

// ManyProcesses skips a test that starts so many processes that it is not for every day; why
// says how many, or of what.
func ManyProcesses(t testing.TB, why string) {
	t.Helper()
	if Everyday() || Race() {
		t.Skip("VARVE_LONG=1 runs it: " + why)
	}
}
