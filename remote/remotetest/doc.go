// Package remotetest has the tests that each implementation of remote.Remote must pass: Run. Log makes a log of real
// frames and its pieces.
//
// An implementation calls Run with a function that returns handles on the same place, as two machines would have them.
// The tests compete for entries from several handles at once, let a writer sleep while others add and prune, and
// compare each piece that is read with the one that was appended.
package remotetest
