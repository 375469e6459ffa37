// Package counts knows how much a store holds, in all and in each session that was asked about, and
// what is evicted where a limit is reached.
//
// # How a limit holds though several processes write
//
// A writer looks at the tally and names, as a precondition of the commit, something that fails if
// others may have used up the room in between; limits.go says which. A commit asks (internal/commit,
// limits.go); nothing here writes.
//
// # Files
//
//	limits   what config.json allows, what a commit adds to it, the conditions that keep it
//	tally    the totals, folded over the log
//	evict    the order in which memories make room
package counts
