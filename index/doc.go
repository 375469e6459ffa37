// Package index stores what can be learned about each memory and assembly without opening its file: memory_index.json,
// the delta over it, and the overlay.
//
// Package table defines the format of the files and the search in them. This package defines their contents.
//
//	section      key                                  value
//	memories     the id                               the line of a memory
//	assemblies   the id                               the line of an assembly
//	by_session   session, NUL, id                     1
//	by_expiry    time with nine digits, Z, NUL, id    1
//	members      assembly, NUL, memory                1
//	by_member    memory, NUL, assembly                1
//	notes        the path, or ./ and the path         the line of a note, or of its sidecar
//
// Files written before assemblies existed lack members and by_member. A file without notes lacks notes.
//
// A line is a JSON object without white space. Its members, in this order:
//
//	memory:   filepath created_at updated_at quickrecal_score content_hash size
//	          [mtime version [by]] [dimension] [vector_id] [session_id] [expires_at]
//	assembly: filepath created_at updated_at member_count content_hash size
//	          [mtime version [by]] [dimension] [vector_id] … [members]
//	note:     filepath created_at updated_at content_hash size [mtime version [by]] dimension
//
// dimension is the dimension of the vector; a document without a vector has 0. Lines written before vectors existed
// lack it; then only the document shows the dimension. vector_id (an integer above 0) is the FAISS id of the vector. It
// is omitted if it equals the version, that is, if the write of this version brought the vector. mtime (microseconds
// since 1970, an integer) and version (the LSN of the frame) are unknown when a record is prepared; Finish adds them
// when the line enters a table, together with by, the number of the writer of this version (an integer above 0; package
// writer), if the frame has one. An index rebuilt from the files alone has no by. A document without a session has no
// session_id, and one that never expires has no expires_at.
// The line of a note that was adopted from its file already has mtime in the log: the mtime of the file.
// members, the ids of an assembly's members, is in the log only: Finish removes it, and the table has the pairs.
// Readers skip unknown members of a line.
//
// The metadata's extra is {"chain":"<16 hex digits>","vectors":N,"dimension":D,
// "memory_bytes":B,"model":{…}}: the chain hash of the log at lsn, the lsn of the vectors that are
// complete as of this one, and their dimension; the last two are absent when unknown. B is the sum
// of the sizes of all memories, with the delta over the base. Indexes of older programs lack
// memory_bytes, and so does every index derived from such an index, until a program needs the sum
// and computes it by reading all lines. model is a Model, absent if the log never named one.
//
// In a delta, the value {"deleted":true,"version":N} hides a memory, an assembly or a note of the base, and the
// value 0 in a section of pairs hides a pair.
//
// In a pair's key the session (an assembly, a memory) comes first, with \x00 written as \x01\x01
// and \x01 as \x01\x02, so that the first NUL ends it: "a" with id "b\x00c" and "a\x00b" with id
// "c" are two keys. Session names without these two bytes are unchanged.
//
// # Three levels
//
// Base and delta (a Set, in files) cover everything below their lsn. The Overlay (heap) has, for
// each key changed since, the position of its newest version. It identifies keys by two hashes
// only, so a reader that follows a position compares the key at that position.
//
// # Writing
//
// WriteDelta and WriteBase take the present set and the changes since, and write a new delta or, merged, a new base.
// Pairs are derived: the line that a change replaces determines which pairs are removed, the line of the
// change determines which are added; for an assembly the members in the set are removed and those of the
// change added. On the heap are the changed keys and pairs, never the lines.
//
// Assumed: one writer at a time (flush.lock); the folders tmp and backups are on the file system of
// the index.
package index
