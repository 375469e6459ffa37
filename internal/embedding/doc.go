// Package embedding gives memories the vectors that the host's embedder computes from their
// contents, and changes the model of all memories.
//
// # When something is put
//
// Commit requests missing vectors, in batches, outside of all locks (put.go). If the embedder
// fails, the memory is stored without a vector and added to a bounded queue; memories beyond the
// bound are found by the index (later.go). Run is the goroutine that works through the queue.
//
// A write waits at most EmbedTimeout for one call, and not at all for an embedder that is down:
// breaker.go decides after failures in a row whether the embedder is asked, and kept.go tells other
// processes of the user, in a file outside of the store.
//
// # The model
//
// All vectors of a store are by one model; vectors of another model are not stored (model.go, which
// is the committer's Suits).
//
// # A change of the model
//
//	compute   all vectors by the new model, into a file beside the vectors (run.go)
//	change    one entry of the log: from there on they are used, by every process (switch.go)
//	rewrite   the documents, in batches, on condition that their content is unchanged (write.go)
//
// After a crash each step continues where it was. A text that the embedder refuses stays pending
// (refused.go); before the switch, a change can be cancelled (cancel.go).
//
// # Layering
//
// Above package commit and the vectors, whose files contain the computed vectors.
package embedding
