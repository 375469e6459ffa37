// Package forgery lists contents that an attacker may write into a store under valid checksums: entries
// of the log, tables and checkpoints. It is used by tests: memctl's, and the harness of package hostile.
//
// A forgery is made in a closed store that has the memories m0 and m1, with embeddings of three numbers.
// Everything in the forgery about these memories is invalid: both must be unchanged afterwards.
package forgery
