// Package scopes stores working memory in a store: package working defines working memory, this
// package where it is stored.
//
// # Log and file
//
// Each operation that changes a scope is an entry of the log with the change, not the state; the
// file of a scope, in working/, has the state as of an entry. So, unlike a memory's file, it must
// not be lost while a newer one replaces it: each version is written into a new inode (file.go). A
// large file with continuous small changes may lag behind the log (lag.go). When a file cannot be
// read, the state is rebuilt from log and archive (rebuild.go).
//
// Before a change that loses something, the log gets the whole document of a scope if log and archive
// cannot make it without the file (copy.go).
//
// # Operations
//
// Operations of one scope are committed together, by the first caller (write.go). Reads use the
// state in the process, once it includes what others have made durable (read.go).
//
// # Time
//
// Values expire by ticks, which do not change when the clock is set (ticks.go).
//
// # Layering
//
// Above package flush, whose rounds write the files through Scopes. It is not a view that can be
// rebuilt: below the mark flushed its files are authoritative.
package scopes
