// Package kinds is a kind of document for tests: notes. It shows what a new kind needs (this
// package, registered before a store is opened), and tests the table of kinds: together with
// memories and assemblies, notes are put, flushed, killed, rebuilt, verified, edited, purged,
// backed up, restored and migrated.
//
// A note is text at a path. The file notes/<path> has its bytes and nothing else, in folders and with
// the extension that the path has. The id of a note is its path. No element of it begins with a dot.
package kinds
