// Package letters is a view that a test plugs in: how many memories there are by the first
// letter of their id. It shows what a further view costs (this folder, and a line where a store
// is opened), and holds the seam to its promises: beside the views of the store it is killed,
// cut, rebuilt, verified, repaired, backed up and purged.
//
// The file, view_index/letters/ids.json, is one JSON object:
//
//	{"lsn": 4096, "sum": 77, "ids": ["anna", "bert"]}
//
// with the moment of the log that it is of, and the ids, sorted.
package letters
