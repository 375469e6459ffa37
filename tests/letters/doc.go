// Package letters is a view for tests: the number of memories by the first letter of their id. It
// shows what a new view needs (this package, and a line where a store is opened), and tests the
// interface: together with the views of the store it is killed, cut, rebuilt, verified, repaired,
// backed up and purged.
//
// The file, view_index/letters/ids.json, is one JSON object:
//
//	{"lsn": 4096, "sum": 77, "ids": ["anna", "bert"]}
//
// with the position and the checksum of the log up to which it is complete, and the ids, sorted.
package letters
