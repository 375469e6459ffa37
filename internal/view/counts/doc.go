// Package counts knows how much a store contains, in total and in each session that was queried,
// and which memories are evicted when a limit is reached.
//
// # How a limit is kept while several processes write
//
// A writer reads the tally and adds a precondition to the commit that fails if others may have used
// up the room in between; limits.go says which one. Package internal/commit (limits.go) calls this
// package; nothing here writes.
//
// # Files
//
//	limits   what config.json allows, what a commit adds to it, the conditions that keep it
//	tally    the totals, folded over the log
//	evict    the order in which memories are evicted
package counts
