// Package meanings implements the view for search of notes by meaning: the vectors of the sections of notes, in
// view_index/meanings/.
//
//	manifest.json       lists the files that belong together; replaced atomically
//	<number>.seg        vectors of sections by the hashes of their texts: 16 hex digits. It never changes
//	<number>.<lsn>.st   which sections the notes have as of a log position
//
// The manifest is one JSON object:
//
//	{"format": 1, "lsn": …, "sum": …,         the log position that the rows cover (wal.Mark)
//	 "model": "nomic-embed-text",             of the vectors: the name that the store has for it, with its template
//	 "metric": "ip",                          of the vectors, as in config.json
//	 "dimension": 768,                        of the vectors; 0 while there are none
//	 "cut": 1,                                the version of the rules by which notes are cut into sections
//	 "next": 18,                              the number of the next file
//	 "rows": {"name": …, "bytes": …, "sum": "…"},
//	 "segments": [{"name": …, "vectors": …, "seen": …, "bytes": …, "sum": "…"}],
//	 "check": "…"}                            xxhash64 of the object without this member
//
// sum is the xxhash64 of a file in hex; seen is the log position up to which the process that added the vectors had
// read, 0 once a merge has compared them with the rows.
//
// A segment:
//
//	"VARVEMEA"  uint32 number of vectors  uint32 dimension
//	32 bytes a vector: the SHA-256 of the text, sorted
//	4 × dimension bytes a vector: float32, as vector.Metric.Row writes them
//
// Rows:
//
//	"VARVEMEB"  and for each note, in the order of paths:
//	uvarint length of the path, path, uvarint version, uvarint number of sections, 32 bytes a section: the SHA-256 of
//	its text, in the order of note.Sections
//
// Integers are little-endian.
//
// # What is derived, and what is not
//
// The rows follow from log and documents, as in every view. The vectors do not: any process that has an embedder
// computes them, and adds them under flush.lock (views.AddMeanings). A vector belongs to a text and not to a place:
// when one section of a note is edited, the other sections of the note keep their vectors; when a note is renamed, all
// its sections keep theirs. Vectors that are lost with the files are computed again. A section whose text has no vector
// is found by words only.
//
// The text of a section (TextOf) has its headings and its lines, at most 8 KiB, and the template of the store's model
// is applied to it as to the content of a memory. All vectors are of one model, for one metric: when the name of the
// store's model or the metric changes, the view begins again without vectors. All vectors have one dimension: when
// vectors of another dimension are added, the earlier vectors are dropped, and their texts are embedded again.
//
// # Cost
//
// Written rows have about 40 bytes a section, and are written with each index that has changes of notes. Vectors are
// written once when they are added; adjoining segments are merged when the earlier one is not twice as large, so that
// each vector is written again a logarithmic number of times. A merge drops the vectors of texts that no section has.
// It keeps such a vector only if the process that added it had read the log beyond the position of the rows: the
// vector's note may not be in an index yet. A process that uses the view has about 150 bytes of memory for each
// section, and maps the vectors.
//
// A search compares all vectors, exactly.
//
// # Purge
//
// The view is a view.Purger: Purge writes all rows again, and every segment that has a vector of a text that no section
// has. The hash of a text is removed with its vector. A process that adds vectors checks, under flush.lock, that a
// section has their text, so the vector of a text that was purged meanwhile is not added.
package meanings
