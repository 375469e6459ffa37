// Package state keeps the result of the log's entries: the position of the newest version of every document. It applies
// records to the overlay over the index, so that the store and repair share one replay. Vectors and working memory are
// brought up to date from these positions when they are needed.
//
// A look-up searches the overlay, then the set of base and delta, in this order. A version that moves from the overlay
// to the set is first in the set and then dropped from the overlay, so a look-up never misses it.
//
// A set is the state exactly as of its lsn. A key that changed again later is in the set with the version that it had
// at that lsn, found along the chain of previous versions. So the number of live documents is the set's count plus the
// effect of the later entries: one more for each creation, one less for each deletion.
//
// Entries of the key 'v' name the model of the vectors (see model.go). Their record (internal/record) has only a line:
//
//	{"name":"…",        of the model
//	 "dim":N,           of its vectors
//	 "since":LSN,       of the entry that changed the store to it
//	 "switch":true,     this entry does
//	 "done":true,       no document by the previous model is left
//	 "next":"…"}        the model by which a re-embedding computes, before the switch
//
// Each entry replaces the ones before it; zero members are omitted. The newest one below an index's lsn is in the
// metadata of that index (package index).
//
// Entries of the key 'u' explain the numbers of writers (see writers.go and package writer). The state has those behind
// the set; those that the set covers are in wal/writers.
package state
