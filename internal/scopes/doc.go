// Package scopes stores working memory in a store. Package working defines what working memory is;
// this package defines where it is kept.
//
// # Log and file
//
// Each operation that changes a scope is an entry of the log with the change, not the state; the
// file of a scope, in working/, has the state as of one entry. So, unlike a memory's file, it must
// not be lost while a newer file replaces it: each version is written to a new inode (file.go). The
// file of a large scope with continuous small changes may lag behind the log (lag.go). If a file
// cannot be read, the state is rebuilt from log and archive (rebuild.go).
//
// Before a change that deletes or replaces data, the whole document of the scope is written to the
// log if log and archive cannot reproduce that data without the file (copy.go).
//
// # Operations
//
// Operations of one scope are committed together, by the first caller (write.go). A read uses the
// state in this process, after applying what other processes have made durable (read.go).
//
// # Time
//
// Values expire by ticks, which do not change when the clock is set (ticks.go).
//
// # Layering
//
// This package is above package flush, whose rounds write the files through Scopes. It is not a
// view: below the flushed mark its files are authoritative and cannot be rebuilt.
package scopes
