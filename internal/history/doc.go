// Package history reads the past: the versions of a document, and what everybody commits.
//
// Both come from the log, below what it still has from its archive, and, for a version
// that is older than both, from the file. What cannot be read yields its error, and the
// rest goes on.
//
//	history.go   the versions of one document, and one of them
//	watch.go     changes from a position on: Watch waits for more, Until ends with what is
//	             committed; a commit comes as a whole
//	filter.go    of one kind, or of one session
package history
