// Package evil has texts with control sequences that a terminal executes, and finds such sequences in
// the output of a program. Only the tests of memctl use it.
package evil
