package proofs

import (
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// Seed returns the seed of a randomized test, and logs it with the command that repeats the test. flagSeed is the
// value of a flag. If flagSeed is not 0, it is the seed. Otherwise the seed is the value of the variable
// VARVE_SEED. If that is not set either, the seed depends only on the test's name, so that two runs of go test or
// .ci/run are the same; but in the long proofs each run has a different seed.
func Seed(t testing.TB, flagSeed uint64) uint64 {
	t.Helper()
	seed := flagSeed
	if text := os.Getenv("VARVE_SEED"); seed == 0 && text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("VARVE_SEED: %v", err)
		}
	}
	switch {
	case seed != 0:
	case Long():
		seed = 1 + rand.Uint64N(1<<40)
	default:
		seed = named(t.Name())
	}
	top, _, _ := strings.Cut(t.Name(), "/")
	t.Logf("VARVE_SEED=%d go test -run '^%s$' repeats this", seed, top)
	return seed
}

// named returns a number from 1 to 1<<39 that is derived from a name.
func named(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return 1 + h.Sum64()>>25
}
