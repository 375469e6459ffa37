// Package counts maintains the number and total size of the memories of a store and of the sessions that were queried,
// and chooses the memories to evict when a limit is reached.
//
// # How a limit is enforced while several processes write
//
// A writer reads the tally and adds a precondition to its commit that fails if other commits may have used up the room
// in between; limits.go describes the preconditions. Package internal/commit (limits.go) calls this package; nothing
// here writes.
//
// # Files
//
//	limits   the limits of config.json, the demand of a commit, the preconditions
//	tally    the totals, folded over the log
//	evict    the order in which memories are evicted
package counts
