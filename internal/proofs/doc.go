// Package proofs decides how much of the tests' long proofs runs:
//
//	go test ./...                 a small share of each proof: seconds
//	.ci/run (VARVE_CI=1)          a larger share, and most tests that start many processes
//	  VARVE_CI=race               the small share again, with the race detector; of proofs that run in one
//	                              goroutine, the small share or none
//	.ci/long (VARVE_LONG=1)       all cases: hours
//
// A proof is a test that tries many cases: cuts, faults, seeds, histories. Flags and variables of
// the packages select a case, or other numbers; see their doc.go.
package proofs
