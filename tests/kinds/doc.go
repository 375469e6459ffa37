// Package kinds is a kind of document for tests: papers. It shows what a new kind needs (this
// package, registered before a store is opened), and tests the table of kinds: together with
// memories and assemblies, notes are put, flushed, killed, rebuilt, verified, edited, purged,
// backed up, restored and migrated.
//
// A note is text at a path. The file papers/<path> has exactly its bytes, in the folders and with the
// extension of the path; it may be empty. The id of a note is its path. No element of it begins with a
// dot. Two notes cannot have paths that differ only in case or in how Unicode is normalised.
package kinds
