// Package tests keeps the list of all tests, so that none is lost when code moves.
//
//	go test ./tests -run TestList -list.update
//
// writes tests.list: a line for each test, "shard package name". The shard says where a test runs:
//
//	daily   go test ./...; some of these skip there for the processes they start, and run with
//	        VARVE_CI=1 or VARVE_LONG=1 (package internal/proofs)
//	fuzz    the seeds with the daily tests, the fuzzing itself in .ci/long
//	bench   by hand
//
// A test that moves to another package keeps its name; the line of a removed test is deleted by hand, in
// a commit that gives the reason.
package tests
