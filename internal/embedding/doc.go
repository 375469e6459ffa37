// Package embedding gives memories the vectors that a host's embedder makes of their
// contents, and changes the model of all of them.
//
// # When something is put
//
// Commit asks for the vectors that are lacking, in batches, outside of all locks (put.go).
// When the embedder fails the memory is stored without one, and waits in a queue that is
// bounded: the index knows the others (later.go). Run is the goroutine that works it off.
//
// # The model
//
// The vectors of a store are by one model; what an embedder of another one makes is not
// stored (model.go, which is the committer's Suits).
//
// # A change of the model
//
//	compute   all vectors by the new model, into a file beside the vectors (run.go)
//	change    one entry of the log: from there on they count, for every process (switch.go)
//	rewrite   the documents, in batches, on condition that their content is the same (write.go)
//
// Each step goes on where it was after a crash. A text that the embedder does not take is
// left pending (refused.go); a change that was not made yet is called off (cancel.go).
//
// # Where it stands
//
// Above package commit and the vectors, whose files have what was computed.
package embedding
