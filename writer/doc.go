// Package writer describes the writers of a store: the programs, agents and sessions that changed it.
//
// A writer is known by a number that the store issues, never by a name that a client gives. An entry
// of the log describes the writer of a number once; the entries behind it carry the number (package segment, field
// 2), and so do the lines of the index (package index, member by).
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
// Members that are empty are omitted. A name has at most MostName bytes: varve.Open refuses a longer one,
// and one that a client gives is cut and ends with Mark. Control characters, and characters that change
// the direction of text, are escaped as \uXXXX, so a name is printed as it is. An undo that is longer than
// MostUndo, or has such characters, is ignored.
//
// # Numbers
//
// The number is one above that of the newest description. The entry is committed on the condition that
// this description still is the newest, so two processes never issue one number. A process that describes
// itself as before uses its number again.
//
// The descriptions of segments that the log has released are in wal/writers. If that file is lost, and
// log and archive do not have them any more, numbers begin again. So a number alone names no writer: the
// writer of a version is that of the newest description of its number at a position before the version,
// and unknown if there is none.
//
// A copy of an older version (record.KeptLine) has the number of that version, and so has a line of the
// index. A backup names the writers of its documents, and the store that is restored from it numbers them
// again. A store that is made from its files alone, such as a clone by git, knows no writer.
//
// # wal/writers
//
// A line for each description, in the order of the log:
//
//	16 hex digits  xxhash64 of the store's UUID and the rest of the line
//	space
//	decimal        the position of the description
//	space
//	the JSON object
//
// The file is written by the holder of flush.lock, before an index takes the place of the entries, and by
// a repair that begins another log (package internal/writerfile). Lines are appended. A line that does not
// verify is ignored: it is torn, or of another store; then the file is written again as a whole, with what
// log and archive have.
package writer
