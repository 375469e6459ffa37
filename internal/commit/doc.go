// Package commit turns operations on a store into batches of its log.
//
// # A commit
//
// Commit prepares each operation from the version that is newest now, and appends all
// of them as one batch, on the condition that these versions still are the newest. When
// one is not, it prepares again; what the caller demanded (Conditions) is judged each
// time and ends it. The steps, in order:
//
//	conditions of several operations on one id, of which the last counts
//	vectors         the store's dimension; a vector that an older model made (vectors.go)
//	memories        their documents and lines, by several goroutines where they are many
//	limits          what a limit refuses, or who makes room (limits.go)
//	assemblies      those that the batch names, and those whose members it changes (along.go)
//
// # What goes along
//
// An assembly and its members never disagree: deleting a memory, or giving it another vector,
// writes its assemblies in the same commit. A Joint is one commit with all of them.
//
// # Transactions, and parts
//
// A Tx notes what it reads, and becomes preconditions; Transact runs it until they hold.
// Parts commits many changes that have nothing to do with each other (files that somebody
// edited), in few batches: one that does not fit keeps only itself out.
//
// # Where it stands
//
// Below it are the engine and the two views that a write asks: counts and vectors. It is
// given why the embedder's vectors may not be stored (Suits) and what the flusher has to do
// with writers (Pace). The steps are not a list of interfaces: all of them share the memory
// of one work, and a put would pay for each call.
package commit
