// Package words is the view that search by words reads: an inverted index of all memories, in the
// form of package internal/words, in view_index/words/:
//
//	manifest.json       what belongs together, put in place in one step
//	<number>.seg        a segment: 16 hex digits. It never changes
//	<number>.<lsn>.st   the state of its rows (words.Part.State) as of a moment of the log
//
// The manifest is one JSON object:
//
//	{"format": 2, "lsn": …, "sum": …,         the moment of the log that the files cover (wal.Mark)
//	 "language": "en",                        of the analyzer
//	 "fields": "speaker=from",                where the words of fields are from (query.Sources.Given); not by default
//	 "terms": 2,                              the version of the terms (package analyzer); not in format 1, which has 1
//	 "next": 18,                              the number of the segment that comes next
//	 "segments": [{"number": 17, "bytes": …, "sum": "…", "state": "…"}],
//	 "check": "…"}                            xxhash64 of the object without this member
//
// sum is words.Segment.Sum in hex; state is "" for a segment whose rows are all live and adjoin.
//
// Files have terms of the first version, and format 1, until all programs that write know others: a round raises
// wal.FeatureTerms when no program that lacks it has the store open, and makes them again beside the old ones, which
// answer until the new manifest is in its place. What a process makes in memory only is of the newest version.
//
// A round writes one segment of what has changed since the one before, and merges eight segments of
// about one size into one, up to 131,072 documents: so a round costs what has changed, and a few
// seconds at most. Files that the manifest does not name are removed behind it; a reader that has read
// the older manifest and misses a file begins again with the newer one.
//
// A rebuild writes each segment of 131,072 documents, or of 64 MiB, when it is full, and the manifest
// behind all of them: it takes the memory of one. What a round has written that failed, it removes; what
// one that was killed has left, the next rebuild or the next Save does.
//
// A query has an instance of its own: it begins with the files, whatever moment they are of, reads what
// the log has since, and keeps that in segments in memory. Where there are no files it makes all of it
// from the documents. Searches run beside each other, on a Set that does not change.
//
// Orders answers listings in an order, counts and sessions from the same files (packages order and rows),
// with an instance of its own that reads of the log no texts. It never makes files' contents: while there
// are none, or they are damaged or of the first format, engine and retention read the index as before.
// Both give the same answers, and a listing may change between them, since its place is a key and an id.
//
// Filters whose texts are in a field (package narrow) leave few rows, of which the documents decide, in
// listings, counts and searches. For Orders all that the log has since the files are among them. It is the
// words of the version that the view has: a file that was edited by hand is known once it was adopted.
package words
