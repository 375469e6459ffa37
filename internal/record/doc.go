// Package record defines an entry of the log: the new document of a key, or its deletion.
//
// The value of an entry, little-endian:
//
//	 0  uint8   version, 1
//	 1  uint8   flags: 1 the document is compressed (zstd)
//	                   2 created: the key was absent before
//	 2  uint16  0
//	 4  uint32  bytes of the index line
//	 8  uint64  previous: the LSN of the key's previous entry, even if it is a
//	            deletion, as long as the log had that entry; 0 if none
//	16  uint32  dimensions of the vector, 0 if none
//	20  uint32  bytes of the document, inflated
//	24  the index line: a JSON object without mtime and version, which are the
//	    entry's commit time and LSN and are added when the line enters a table
//	    the vector: float32 each
//	    the document: the exact bytes of the file
//
// The deletion of a document has no line, no vector and no document.
//
// An entry of working memory, whose key is 'w' and the key of a scope, has the changes of the scope, not
// its state:
//
//	the line       working.LogEntry.Head: {"time":…,"tick":…,"version":…[,"fresh":true]}, the
//	               moment at which the changes were evaluated, the version of the first
//	               change, and whether the previous state is discarded
//	the document   a line for each operation, as working.Delta.Encode writes it; or
//	               the document of the scope as a whole, which begins with {
//
// So the state is the file of the scope with the later entries, found along previous, applied in
// order. An entry that leaves the scope empty is a deletion.
//
// An entry of the key 'p' names what was purged or redacted: package internal/purgefile defines its
// line. It does not change a document, and is never erased.
//
// A kept version, whose key is 'k' and the key of a document, is a copy of a version that neither log
// nor archive had when a later entry of the same batch replaced or deleted it. It is not a change: only
// history and purge read it.
//
//	previous       the version of which it is a copy
//	the line       {"time":…[,"by":N],"line":…}: when that was committed, in Unix microseconds, the
//	               number of its writer, where that is known, and its line
//	the document   the exact bytes of the file
//
// Line and vector come first and are never compressed, so that a replay parses no JSON and decompresses
// nothing. Only documents of 4 KiB and more are compressed, and only if that makes them smaller, by at
// most 64 times: a document that would shrink more is written uncompressed. So the inflated size of a
// log that this program writes is proportional to its size. Logs of older versions, and forged ones,
// have documents that are compressed more (View.Overpacked); these are read too, up to what a frame can
// have (Codec.Bound), and the background goroutines of a store that read documents have at most 64 MiB
// of them in memory at once, or a single larger one (Codec.Take, Codec.Lend).
//
// previous links the versions of a key to a chain that can be followed back as far as the log reaches:
// it determines which bytes in a file can be a version that the store wrote.
package record
