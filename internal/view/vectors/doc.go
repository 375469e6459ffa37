// Package vectors keeps the vector files of a store (vector_index/) consistent with the documents,
// and knows their model. Package vector has the formats of the files and the search; this package
// decides when they are written, compared, healed and read.
//
// In a process it is created by the first search, so that puts and deletes have no cost. A View has
// the present vectors: the files, and on the heap those of later entries of the log. The files are
// derived: if they cannot be written, the index is written without them, and records that it is
// unknown which are complete; a caller that needs them then compares them with the documents.
//
// # The model
//
// At any moment all vectors are by one model, which an entry of the log names (key 'v'). A change
// of the model is one entry; documents are rewritten after it, and until then such a version has
// the vector that was computed for its content, in vector_index/reembed, or none. computed.go draws
// that file.
//
// # Files
//
//	vectors          the View, loading the files, comparing them
//	spill plan       writing them: what changed, and what is read for that
//	fit dimensions   the dimension of the store's vectors, and what decides it
//	drift            by how much the files lag behind the index
//	model            the model of the vectors, and which vector a version has
//	computed computed_index   the file of a re-embedding, and searching it
package vectors
