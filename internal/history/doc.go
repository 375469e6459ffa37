// Package history reads the past: the versions of a document, and the commits of all processes. It
// reads them from the log, and older ones from the archive of the log. If a version is older than
// the archive, history reads it from the file of the document. An entry that cannot be read yields
// its error, and reading continues.
//
//	history.go   the versions of a document, and a single version
//	watch.go     changes from a position on: Watch waits for more, Until ends with what has
//	             been committed; a commit is delivered as a whole
//	filter.go    changes of one kind, or of one session
//	redacted.go  versions that were redacted, without their content
package history
