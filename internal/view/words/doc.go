// Package words implements the views for search by words: an inverted index of all memories, and one of the sections of
// all notes, in the format of package internal/words, in view_index/words/ and view_index/sections/:
//
//	manifest.json       lists the files that belong together; replaced atomically
//	<number>.seg        a segment: 16 hex digits. It never changes
//	<number>.<lsn>.st   the state of its rows (words.Part.State) as of a log position
//
// The manifest is one JSON object:
//
//	{"format": 2, "lsn": …, "sum": …,         the log position that the files cover (wal.Mark)
//	 "language": "en",                        of the analyzer
//	 "fields": "speaker=from",                the sources of the fields (query.Sources.Given), if not the default
//	 "terms": 2,                              the version of the terms (package analyzer); not in format 1, which has 1
//	 "cut": 1,                                of sections, the version of the rules by which notes are cut into them
//	 "next": 18,                              the number of the next segment
//	 "segments": [{"number": 17, "bytes": …, "sum": "…", "state": "…"}],
//	 "check": "…"}                            xxhash64 of the object without this member
//
// sum is words.Segment.Sum in hex; state is "" for a segment whose rows are all live and adjacent.
//
// Subjects differ in what is a row (subject.go). A row of words is a memory. A row of sections is a section of a note
// (note.Sections), with the id note.SectionID, the path as its session and the time of the last change of the note, so
// that the sections of a note are neighbours in their order. A new version of a note replaces all its rows, so its
// sections are always in one segment. A note without sections has one row without words. Segments of sections are
// numbered from 2⁴⁸ on: a search joins the segments of both views in one words.Set, whose statistics are of memories
// and sections together. If their analyzers differ, because the settings were changed a moment ago, it searches one
// after the other. A store that never had a note has no files of sections.
//
// Files have terms of the first version, and format 1, until all programs that write the store support others: a round
// raises wal.FeatureTerms when no program without it has the store open, and rebuilds the files beside the old ones,
// which stay in use until the new manifest replaces theirs. Segments in memory always have the newest version.
//
// A round writes one segment with the changes since the previous round, and merges eight segments of about the same
// size into one, up to 131,072 documents. So the cost of a round depends on the changes, and is a few seconds at most.
// Files that the manifest does not list are removed after it is written; a reader that has an older manifest and misses
// a file starts again with the newer manifest.
//
// A rebuild writes each segment of 131,072 documents or 64 MiB as soon as it is full, and the manifest after all of
// them, so it needs the memory of one segment. A round that fails removes its files; the files of an interrupted round
// are removed by the next rebuild or Save.
//
// A query uses its own instance. It starts with the files, whatever their position, reads the log since, and keeps the
// changes in segments in memory. If there are no files it builds all segments from the documents. Searches run in
// parallel on an immutable Set.
//
// Orders answers ordered listings, counts and sessions from the same files (packages order and rows), with its own
// instance that reads no texts from the log. It never builds content from documents: while files are missing, damaged
// or of the first format, engine and retention read the index instead. Both sources give the same answers, and a
// listing may switch between them, since its place is a key and an id.
//
// Filters on texts of a field (package narrow) select few rows, and the documents decide among these, in listings,
// counts and searches. For Orders the selected rows include all changes since the files. The words are those of the
// version in the view: an edit by hand counts once it is adopted.
package words
