// Package commit turns operations on a store into batches of its log.
//
// # A commit
//
// Commit prepares each operation from the newest version, and appends all of them as one batch, on the condition that
// these versions are still the newest. If one is not, it prepares the batch again. The caller's own Conditions are
// checked each time; if one fails, the commit ends. The steps, in order:
//
//	conditions      the conditions are evaluated; of several operations on one id only the last is written
//	vectors         the store's dimension; a vector that an older model made (vectors.go)
//	memories        documents and index lines are made, by several goroutines if there are many
//	limits          refuse the commit, or select what is evicted (limits.go)
//	assemblies      the ones in the batch, and the ones whose members it changes (cascade.go)
//
// # One document, many writers
//
// A put without conditions on the version before it does not conflict: the log calls the commit to prepare it again on
// top of the newest entry of its key (onto.go). Other writers of one document that conflict take turns within a process
// (turns.go). An update reads the version that the previous update of the document has written, even before that
// version is durable (follow.go). A transaction that has conflicted for long makes all other writers wait.
//
// # Assemblies of changed members
//
// An assembly and its members always agree: deleting a memory, or giving it another vector, also writes its assemblies
// in the same commit. A Joint is one commit with all of them.
//
// # Transactions, and parts
//
// A Tx records what it reads; the records become preconditions, and Transact runs the function again until they hold.
// CommitParts commits many independent changes (files that a user edited) in few batches: a change whose precondition
// fails is excluded alone.
//
// # Layering
//
// Below this package are the engine and the two views that a write needs: counts and vectors. Two interfaces lead
// upwards: Host reports why the embedder's vectors must not be stored, and Pace is what the flusher contributes to a
// write. The steps are functions that share one struct (type work) and not a list of interfaces, because a put would
// pay for each call.
package commit
