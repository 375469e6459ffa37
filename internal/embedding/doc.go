// Package embedding gives memories the vectors that the host's embedder computes from their contents, and changes the
// model of all memories.
//
// # When a memory is put
//
// Commit requests missing vectors, in batches, outside of all locks (put.go). If the embedder fails, the memory is
// stored without a vector and added to a bounded queue; memories beyond the bound are found through the index
// (later.go). Run is the goroutine that works through the queue.
//
// A write waits at most EmbedTimeout for one call, and not at all for an embedder that is down: after consecutive
// failures breaker.go decides whether the embedder is asked, and kept.go shares that with the user's other processes,
// in a file outside of the store.
//
// # Notes
//
// The texts of sections of notes get vectors in the background only (sections.go): RunSections looks for texts without
// one every three seconds, in whatever process has the embedder. Their vectors are in a view of their own, package
// internal/view/meanings.
//
// # The model
//
// All vectors of a store are by one model. Vectors of another model are not stored (model.go implements the committer's
// Suits).
//
// # A change of the model
//
//	compute   all vectors by the new model, into a file beside the vectors (run.go)
//	switch    one entry of the log: from there on all processes use them (switch.go)
//	rewrite   the documents, in batches, if their content is unchanged (write.go)
//
// After a crash each step resumes. A text that the embedder refuses stays pending (refused.go). Before the switch, a
// change can be cancelled (cancel.go).
//
// # Layering
//
// The package is above package commit and above the vectors, whose files contain the computed vectors.
package embedding
