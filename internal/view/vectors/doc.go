// Package vectors keeps the vectors' files of a store (vector_index/) true to the documents,
// and says which model makes them. Package vector has the files' formats and the search; here
// is when they are written, compared, healed and read.
//
// Nothing of it exists in a process before the first search: putting and deleting pays nothing
// for it. A View is the vectors as of now: the files, and on the heap what the log has since.
// The files are derived: when they cannot be written the index goes on without, and says that it is
// unknown which are complete; a caller that needs them then compares them with the documents.
//
// # The model
//
// All vectors are by one model at any moment, which an entry of the log names (key 'v'). A
// change of the model is one entry; documents are rewritten behind it, and until then the
// vector that counts for such a version is the one that was computed for its content, which
// vector_index/reembed has, or none. computed.go draws that file.
//
// # Files
//
//	vectors          the View, loading the files, what they are compared with
//	spill plan       writing them: what changed, what is read for it
//	fit dimensions   the dimension that the store's vectors have, and who decides it
//	drift            by how much the files lag behind the index
//	model            which model makes the vectors, and which vector counts for a version
//	computed computed_index   the file of a re-embedding, and finding something in it
package vectors
