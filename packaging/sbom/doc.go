// Command sbom writes the contents of a Go program as an SPDX document, version 2.3, in JSON: the program with
// its SHA-256, and each module that the toolchain has recorded in it, with its version and the hash of go.sum.
//
//	sbom [-version VERSION] [-time SECONDS] PROGRAM DOCUMENT
//
// Everything is read from the program, nothing from the network or from the sources, so that the document says
// what is in the program and not what was meant to be. A license is NOASSERTION: a program does not contain the
// licenses of its modules.
//
// # Invariants
//
// The same program, version and time give the same bytes; the namespace contains the program's hash instead of
// a random number.
package main
