// Package index keeps what is known of every memory and assembly without
// opening its file: memory_index.json, the delta over it, and the overlay.
//
// The form of the files, and how they are searched, belongs to package table.
// This package says what stands in them.
//
//	section      key                                  value
//	memories     the id                               the line of a memory
//	assemblies   the id                               the line of an assembly
//	by_session   session, NUL, id                     1
//	by_expiry    time with nine digits, Z, NUL, id    1
//	members      assembly, NUL, memory                1
//	by_member    memory, NUL, assembly                1
//
// Files from before there were assemblies lack the last two.
//
// A line is a JSON object without white space. Its members, in this order:
//
//	memory:   filepath created_at updated_at quickrecal_score content_hash size
//	          [mtime version] [dimension] [vector_id] [session_id] [expires_at]
//	assembly: filepath created_at updated_at member_count content_hash size
//	          [mtime version] [dimension] [vector_id] … [members]
//
// dimension is that of the vector, 0 where there is none; only lines from before there were vectors
// lack it, and then only the document tells. vector_id (an integer above 0) is the FAISS id of the
// vector; it is left out where that is the version itself, which is so whenever this write brought
// the vector. mtime (microseconds since 1970, an integer) and version (the LSN of the frame) are
// not known when a record is prepared; Finish adds them when the line enters a table. session_id
// and expires_at are left out when there is none. members, the ids of an assembly's members, is in
// the log only: Finish takes it away, and the table has the pairs. Readers skip members that they
// do not know.
//
// The metadata's extra is {"chain":"<16 hex digits>","vectors":N,"dimension":D,
// "memory_bytes":B,"model":{…}}: the chain hash of the log at lsn, the lsn of the vectors that are
// complete as of this one, and their dimension; these two are missing where they are unknown. B is
// the sum of the sizes of all memories, with the delta over the base; it is missing in an index
// from before, and wherever that is the ground of another, until somebody has to know it and reads
// all lines. model is a Model, missing where the log never told one.
//
// In a delta {"deleted":true,"version":N} hides a memory or an assembly, and 0
// in a section of pairs hides a pair.
//
// In a pair's key the session (an assembly, a memory) comes first, with \x00 written as \x01\x01 and
// \x01 as \x01\x02, so that the first NUL ends it: "a" with id "b\x00c" and
// "a\x00b" with id "c" are two keys. Ordinary sessions are written as they are.
//
// # Three levels
//
// Base and delta (a Set, in files) cover everything below their lsn. The Overlay
// (heap) has, for each key changed since, the position of its newest version. It knows keys only by
// two hashes: a reader that follows a position compares the key that it finds there.
//
// # Writing
//
// Write takes the set that stands and the changes since, and writes a new delta
// or, merged, a new base. The pairs are derived: the line that a change replaces
// says which pairs go, its own line which come; of an assembly the members of the
// set go and those of the change come. Heap: the changed keys and
// pairs, never the lines.
//
// Assumed: one writer at a time (flush.lock); the folders tmp and backups lie on
// the file system of the index.
package index
