package storetest

import (
	"bytes"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Rewrite changes the content of a file and keeps its mtime; f must change the content.
func Rewrite(t testing.TB, name string, f func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	changed := f(bytes.Clone(b))
	if bytes.Equal(changed, b) {
		t.Fatalf("%s was not changed", name)
	}
	if err := errors.Join(os.WriteFile(name, changed, 0o600),
		os.Chtimes(name, info.ModTime(), info.ModTime())); err != nil {
		t.Fatal(err)
	}
}

// Seed returns the value of VARVE_SEED, or a random seed if the variable is not set. It logs the command that runs
// the test again; pkg is the package of the test in that command.
func Seed(t testing.TB, pkg string) uint64 {
	seed := rand.Uint64()
	if s := os.Getenv("VARVE_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("again: VARVE_SEED=%d go test %s -run '^%s$'", seed, pkg, t.Name())
	return seed
}

// SameTexts fails and ends the test unless got and want have the same texts. label begins the messages of the
// failure.
func SameTexts(t testing.TB, label string, got, want map[string]string) {
	t.Helper()
	if !maps.Equal(got, want) {
		for id := range want {
			if got[id] != want[id] {
				t.Errorf("%s: %s is %.30q, want %.30q", label, id, got[id], want[id])
			}
		}
		for id := range got {
			if _, ok := want[id]; !ok {
				t.Errorf("%s: %s should not be there", label, id)
			}
		}
		t.FailNow()
	}
}
