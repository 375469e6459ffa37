// Package formats lists the formats of the files of a store and of a backup, with the versions that this
// build writes and reads. Each format belongs to the package of its constant, whose package comment
// defines it; this list is for messages and for programs that decide which build may open which store:
// memctl version, and docs/releases.md.
//
// # Invariants
//
// A version that a release has written stays readable: Oldest never grows within a major version of the
// module. A file of a version above Writes is refused with errs.NewerError, and is never treated as
// damage.
package formats
