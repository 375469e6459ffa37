// Package proofs decides how much of the tests' long proofs runs:
//
//	go test ./...                 each proof's everyday share: seconds
//	  VARVE_CI=race               of proofs in one goroutine, a quarter of that or nothing
//	.ci/run (VARVE_CI=1)          that, and the tests that start many processes
//	.ci/long (VARVE_LONG=1)       all: hours
//
// A proof is a test that tries many cases: cuts, faults, seeds, histories. Flags and variables of
// the packages select a case, or other numbers; see their doc.go.
package proofs
