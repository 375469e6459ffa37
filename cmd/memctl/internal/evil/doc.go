// Package evil has text that a terminal would obey, and finds such text in an output. Only the
// tests of memctl use it.
package evil
