// Package evil has text with sequences that a terminal executes, and finds such sequences in an
// output. Only the tests of memctl use it.
package evil
