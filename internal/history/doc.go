// Package history reads the past: the versions of a document, and the commits of all processes.
// Both are read from the log; older entries from its archive; and a version older than both from the
// file. An entry that cannot be read yields its error, and reading continues.
//
//	history.go   the versions of a document, and a single version
//	watch.go     changes from a position on: Watch waits for more, Until ends with what has
//	             been committed; a commit is delivered as a whole
//	filter.go    changes of one kind, or of one session
//	redacted.go  versions that were redacted, without their content
package history
