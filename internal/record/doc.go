// Package record says what one entry of the log tells: which document a key has
// now, or that it is gone.
//
// The value of an entry, little-endian:
//
//	 0  uint8   version, 1
//	 1  uint8   flags: 1 the document is compressed (zstd)
//	                   2 created: nothing was there before, or its deletion was
//	 2  uint16  0
//	 4  uint32  bytes of the index line
//	 8  uint64  previous: the LSN of the key's entry before this one, be it a
//	            deletion, as long as the log had it; 0 if none
//	16  uint32  dimensions of the vector, 0 if none
//	20  uint32  bytes of the document, inflated
//	24  the index line: a JSON object without mtime and version, which are the
//	    entry's commit time and LSN and are added when the line enters a table
//	    the vector: float32 each
//	    the document: the exact bytes of the file
//
// The deletion of a document has no line, no vector and no document.
//
// An entry of working memory, whose key is 'w' and the key of a scope, says not
// what the scope is but what changes:
//
//	the line       working.LogEntry.Head: {"time":…,"tick":…,"version":…[,"fresh":true]}, the
//	               moment at which the changes were judged, the version that the first
//	               of them has, and whether what was there before counts for nothing
//	the document   a line for each operation, as working.Delta.Encode writes it; or
//	               the document of the scope as a whole, which begins with {
//
// So its state is the file of the scope with the entries above it played in order,
// found along previous. One that leaves nothing of the scope is a deletion.
//
// Line and vector come first and are never compressed, so that a replay parses
// no JSON and inflates nothing. Only documents of 4 KiB and more are compressed,
// and only if that makes them smaller.
//
// previous makes the versions of a key a chain that can be walked back while
// the log reaches: it says which bytes in a file can be ours.
package record
