// Package unfix removes one fix at a time from a copy of this tree and runs the test of that fix:
// the test must fail.
//
//	go test ./tests/unfix                                      every case still applies
//	VARVE_LONG=1 go test ./tests/unfix -timeout 2h             every case turns red
//	VARVE_LONG=1 go test ./tests/unfix -run 'TestRed/^(62|R1)' those whose names begin so
//
// # A case
//
// cases/NAME.unfix is plain text. NAME begins with the number of a row in
// docs/failures.md, or with a letter and a number.
//
//	what is removed, in one line
//	the command that must fail, for sh, in the root of the module
//
//	-- with the fix --
//	lines as they are in the tree
//	-- without --
//	the lines that replace them
//
// The two blocks may repeat. A block is found by its content: its lines, without the white space
// around each, occur in exactly one place of the module's .go and .lua files. It names neither a
// file nor a line, so that it stays valid when code moves to another file or package. A block that
// does not occur, or that occurs twice, makes the everyday test fail: rewrite it from the present
// code.
package unfix
