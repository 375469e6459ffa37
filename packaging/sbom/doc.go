// Command sbom writes what a Go program is made of as an SPDX document, version 2.3, in JSON: the
// program with its SHA-256, and each module that the toolchain has noted in it with its version and
// the hash of go.sum.
//
//	sbom [-version VERSION] [-time SECONDS] PROGRAM DOCUMENT
//
// Everything is read from the program, nothing from the network or from the sources, so that the
// document says what is in the program and not what was meant to be. A license is NOASSERTION: a
// program does not have those of its modules.
//
// # Invariants
//
// The same program, version and time give the same bytes; the namespace has the program's hash in the
// place of a random number.
package main
