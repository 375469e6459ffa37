// Package purgefile defines what a store remembers of its purges: the entries of the log that name what
// was purged, the file wal/purges with those that the log has released, and the file wal/purged-texts,
// by which a purged text is recognised when it returns.
//
// # What is purged
//
// A Row names a document, and the version up to which it is purged; or one version of it that is
// redacted. The id must not be in the store anymore, so a row has a digest of it (KeyOf): the first 16
// bytes of SHA-256 over "varve purge", the UUID of the store and the key of the document in the log. A
// program that has an id can look it up. A reader of the file who guesses an id can confirm it.
//
// # Entry
//
// The entry of the log has the key 'p'. Its record (internal/record) has only a line, a JSON object:
//
//	{"purged":[{"key":"<32 hex digits>",  digest of the document's key
//	            "version":N,              versions up to this one are purged; or, with redacted, this version
//	            "first":N,                nothing of what was purged is before this position of the log
//	            "redacted":true,          only this version, whose document remains
//	            "time":N,                 of a redacted version: its commit, Unix microseconds
//	            "writer":N,               of a redacted version: the number of its writer, see package writer
//	            "next":N}]}               of a redacted version: the version that replaced or deleted it
//
// with 1 to MostRows rows. Members that are zero are omitted. The time and the writer of the entry are
// those of the purge. The entry is committed when the documents are deleted, and before anything is
// overwritten. It deletes nothing, so a replay skips it. A restore omits what it names, and history
// shows a redacted version without its content, even while the bytes are in the log or in a file that
// has returned.
//
// # wal/purges
//
// A line for each row, in the order of the log:
//
//	16 hex digits  xxhash64 of the rest of the line
//	space
//	JSON object    the members of a row, and of its entry: "since" (its position), "at" (its commit, Unix
//	               microseconds), "by" (the number of its writer), "store" (the UUID with which key is made);
//	               of a redaction "done":true and "ended" (position of the log then), when nothing of the version
//	               is left to overwrite
//
// The holder of flush.lock writes the file as a whole, before an index takes the place of the entries. A
// line that does not verify is damage, and stays until a repair: verify reports it, since what the line
// named may be restored.
//
// A backup has the lines as files.purges, with the hash in backup.json. A store that is restored has
// them in wal/purges, with the UUID of the store that purged: versions of a restored store are above all
// versions of the original, so the rows apply to backups of both. A store that is created from its files
// alone, such as a clone by git, has no rows.
//
// # wal/purged-texts
//
//	16 hex digits  xxhash64 of the rest of the line
//	space
//	"key" or "text"
//	space
//	64 hex digits  of a key; 32 of a text
//
// The first line has the key, random bytes. A text is the first 16 bytes of HMAC-SHA256 with the key over the text
// without white space at both ends, or, if that is shorter than LeastText bytes, over the key of the document in the
// log, a zero byte and the text. So a purged "ok" is recognised in its own document only. The text of a memory is its
// content, that of an assembly its name and its description with a line feed between, that of any other document its
// bytes. The holder of flush.lock writes the file as a whole.
//
// The file never leaves wal/: a backup does not have it, because with its key a guess of a purged text can be
// confirmed. So a restored store does not recognise texts that were purged before. A migration takes it along.
package purgefile
