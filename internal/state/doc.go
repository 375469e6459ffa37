// Package state is what the log's entries add up to: where the newest version
// of everything is. It applies records to the overlay over the index, so that
// there is one replay, for the store and for repair. Vectors and working memory are brought up when
// they are needed, from the positions that it knows.
//
// A look-up asks the overlay, then the set of base and delta, in this order: a version that moves
// from the one to the other is swapped into the set first and dropped from the overlay after, so no
// order of the two looks misses it.
//
// A set is the state exactly as of its lsn. A key that changed again since is
// taken with the version that it had then, found along the chain of previous
// versions. So the number of live things is the set's count plus what the
// entries behind it say of themselves: one more where one is created, one less
// for a deletion.
//
// What makes the vectors is told by entries of the key 'v' (see model.go), whose record
// (internal/record) has nothing but a line:
//
//	{"name":"…",        of the model
//	 "dim":N,           of its vectors
//	 "since":LSN,       of the entry that changed the store to it
//	 "switch":true,     this entry does
//	 "done":true,       no document by the model before is left
//	 "next":"…"}        the model by which a re-embedding computes, before the switch
//
// Each stands for all that the ones before it said; members that are zero are left out.
// The newest one below an index's lsn is in that index's metadata (package index).
package state
