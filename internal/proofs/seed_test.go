package proofs

import "testing"

// TestSeed: a flag precedes the variable, the variable precedes the name; a run without either is the
// same twice.
func TestSeed(t *testing.T) {
	t.Setenv("VARVE_LONG", "")
	t.Setenv("VARVE_SEED", "")
	if a, b := Seed(t, 0), Seed(t, 0); a != b || a == 0 {
		t.Errorf("two runs have the seeds %d and %d", a, b)
	}
	t.Setenv("VARVE_SEED", "7")
	if got := Seed(t, 0); got != 7 {
		t.Errorf("with the variable: %d", got)
	}
	if got := Seed(t, 5); got != 5 {
		t.Errorf("with the flag: %d", got)
	}
	t.Setenv("VARVE_LONG", "1")
	if got := Seed(t, 0); got != 7 {
		t.Errorf("with the variable, in the long proofs: %d", got)
	}
	t.Setenv("VARVE_SEED", "")
	if a, b := Seed(t, 0), Seed(t, 0); a == b {
		t.Errorf("two of the long proofs have the seed %d", a)
	}
}
