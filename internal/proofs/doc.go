// Package proofs decides how much of the tests' long proofs runs:
//
//	go test ./...                 an eighth of each proof: seconds
//	.ci/run (VARVE_CI=1)          a third of each, and most tests that start many processes
//	  VARVE_CI=race               the small share again, of proofs in one goroutine that or nothing
//	.ci/long (VARVE_LONG=1)       all: hours
//
// A proof is a test that tries many cases: cuts, faults, seeds, histories. Flags and variables of
// the packages select a case, or other numbers; see their doc.go.
package proofs
