// Package vectors keeps the vector files of a store (vector_index/) consistent with the documents, and maintains the
// model of the vectors. Package vector has the file formats and the search; this package decides when files are
// written, compared, repaired and read.
//
// A process creates a View on its first search, so that puts and deletes have no cost. A View has the current vectors:
// the files, and on the heap the vectors of later log entries. The files are derived data. If they cannot be written,
// the index is written without them, and records that it is unknown which vectors are complete; the next caller that
// needs the vectors compares them with the documents.
//
// # The model
//
// At any moment all vectors belong to one model, which an entry of the log names (key 'v'). A switch to another model
// is one entry; the documents are rewritten after it. Until a document is rewritten, its vector is the one that was
// computed for its content, in vector_index/reembed, or none. computed.go describes that file.
//
// # Files
//
//	vectors          the View: loading the files and comparing them
//	spill plan       writing the files: what changed, and what must be read for that
//	fit dimensions   the dimension of the store's vectors, and what determines it
//	drift            how far the files lag behind the index
//	model            the model of the vectors, and which vector a version has
//	computed computed_index   the file of a re-embedding, and searching in it
package vectors
