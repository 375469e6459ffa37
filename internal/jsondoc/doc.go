// Package jsondoc reads and writes the JSON text of a document. It opens no file: internal/docfile
// keeps documents in files, and the packages above define the members that a document has.
//
//	Object, Parse            a document as its members in order; unknown members are kept byte for byte
//	MemberEditor             sets, changes and removes members of a decoded document
//	MemberWriter             writes a new document
//	DecodeX, AppendX         one value: text, numbers, times, vectors, lists, maps
//	CheckX                   the limits of a document: bytes, depth, counts, dimensions, ids, times
//	FileName                 the name of the file that has the document with an id
//
// # Invariants
//
//   - A member that an update does not change keeps its bytes; a new member has its place in the
//     order that the package above gives.
//   - No text is decoded deeper than DeepestDepth, or has more members or values than the limits in
//     CheckCounts, whatever limits config.json sets.
//   - Two ids never have one file name, also where the file system folds case or normalises Unicode.
package jsondoc
