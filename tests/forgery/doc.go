// Package forgery lists what a stranger may write into a store under checksums that are
// right: entries of the log, tables and checkpoints. It is for tests: memctl's, and the
// harness of package hostile.
//
// A forgery is made in a store that nobody has open and that has the memories m0 and m1,
// with embeddings of three numbers. What it says is invalid as far as it is about them:
// both must be what they were after it.
package forgery
