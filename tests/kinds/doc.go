// Package kinds is a kind of document for tests: papers. It shows what a new kind needs (this
// package, registered before a store is opened), and tests the table of kinds: together with
// memories and assemblies, papers are put, flushed, rebuilt, verified, edited, purged, backed up, restored
// and migrated, by processes some of which are killed.
//
// A paper is text at a path. The file papers/<path> has exactly its bytes, in the folders and with the
// extension of the path; it may be empty. The id of a paper is its path. No element of the path begins
// with a dot. Two papers cannot have paths that differ only in case or in how Unicode is normalised.
package kinds
