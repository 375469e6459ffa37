// Package writer describes the writers of a store: the programs, agents and sessions that changed it.
//
// The store identifies a writer by a number that it assigns, never by a name that a client gives. An entry of
// the log describes the writer with a number once. Later entries contain the number (package segment, field 2),
// and so do the lines of the index (package index, member by).
//
// # Description
//
// The describing entry has the key 'u'. Its record (internal/record) has only a line, a JSON object:
//
//	{"number":N,            above 0
//	 "program":"…",         the program and its command: "memctl put"
//	 "host":"…",            the name of the machine
//	 "pid":N,               of the process there
//	 "started":"…",         when the process opened the store, RFC 3339
//	 "agent":"…",           the agent for which the process writes
//	 "session":"…",         its session
//	 "client":"…",          the name that an MCP client gave itself
//	 "client_version":"…",  and its version
//	 "token":"…",           the name of the token with which a client identified itself
//	 "undo":"…"}            what an undo of several commits takes back, a JSON object: package internal/undo
//
// Empty members are omitted. A name has at most MostName bytes: varve.Open refuses a longer one, and one that a
// client gives is cut and ends with Mark. Control characters, and characters that change the direction of text,
// are escaped as \uXXXX, so a name can be printed safely. An undo that is longer than MostUndo, or has such
// characters, is ignored.
//
// # Numbers
//
// A new number is one above that of the newest description. The entry is committed on the condition that this
// description is still the newest, so two processes never assign the same number. A process that describes
// itself as before uses its number again.
//
// The descriptions in segments that the log has released are in wal/writers. If that file is lost, and log and
// archive do not have them any more, numbers begin again at 1. So a number alone does not identify a writer:
// the writer of a version is that of the newest description with its number at a position before the version,
// and unknown if no such description exists.
//
// A copy of an older version (record.KeptLine) has the number of that version, and so has a line of the index.
// A backup contains the descriptions of the writers of its documents, and the store that is restored from it
// assigns new numbers to them. A store that is created from its files alone, such as a clone by git, has no
// descriptions of writers.
//
// # wal/writers
//
// The file has a line for each description, in the order of the log:
//
//	16 hex digits  xxhash64 of the store's UUID and the rest of the line
//	space
//	decimal        the position of the description
//	space
//	the JSON object
//
// The file is written by the holder of flush.lock, before an index replaces the entries of the log, and by a
// repair that begins another log (package internal/writerfile). Lines are appended. A line whose hash does not
// match is ignored: it is incomplete, or belongs to another store. Then the whole file is written again with
// the descriptions that log and archive have.
package writer
