package wal

import "context"

// Machine is the state that results from the entries of a log: the views above the log. The log passes durable entries
// to the Machine, and asks it whether preconditions hold.
//
// The log calls one method at a time, with a lock held on its read position: no method may call a method of the same
// FileLog that reads further or needs that lock (Append, CatchUp, Read, AppliedMark, SetCheckpoint). Current,
// Deletion, Unchanged, Also and Counts are called in each commit while append.lock keeps other processes from writing:
// they must be quick.
type Machine interface {
	// Begin loads the views; the entries from start.Spilled on are applied next. Open calls it, under open.lock
	// unless the handle is read-only, and again after the log was healed or when Agrees returns an error. Later
	// Begin is called if the part of the log at this process's read position has been released, possibly by an
	// Append that holds append.lock.
	//
	// During Open, an error of Begin is returned by Open. Later, it is returned by the CatchUp or Append that
	// found its position released, and the next call tries again.
	Begin(ctx context.Context, start Start) error

	// Agrees verifies that the views that Begin loaded belong to this log: none reaches beyond the end of the log, and
	// the chain hash at the end of each view equals the log's hash there, unless chain no longer knows it. Open calls
	// it once everything durable is applied.
	//
	// An error means that the views do not belong to the log. If no other process has the store open, Begin follows,
	// with start.Rebuild; otherwise Open returns the error.
	Agrees(end Mark, chain func(LSN) (uint64, bool)) error

	// Apply receives the durable entries in order. Keys and values are valid only during the call.
	//
	// An error is returned by the Open or CatchUp that applies the entries; a commit that is already durable
	// still succeeds. The next call begins with the same entries, including those that were applied before the
	// error. Entries are also repeated after a Begin.
	Apply(entries []Entry) error

	// Current returns the LSN of the newest applied entry of a key, 0 if the key is absent. It is also called
	// for the keys that Also and Counts return. An error refuses only the batch that has the precondition.
	Current(key string) (LSN, error)

	// Deletion returns the LSN of the newest applied entry of an absent key, 0 if that is no longer known. It
	// is called only for a precondition that is Chained.
	Deletion(key string) LSN

	// Unchanged reports whether it is certain, without a look-up, that Current would return p.LSN. It is called before
	// Current, for a precondition that has a Hint.
	Unchanged(p Precondition) bool

	// Also returns further keys of which the entry is the newest one. They are for preconditions that are evaluated
	// before the entry is applied; for these keys, Current returns their own positions. Also must return the same keys
	// for an entry each time. For an entry that it cannot read it returns no keys: Apply returns the error.
	Also(e *Entry) []string

	// Counts returns the amounts that an entry adds to running totals. A running total is a key for which Current
	// returns the sum of the amounts of all applied entries since some starting point. Counts must return the same
	// amounts for an entry each time, once the starting point is set.
	Counts(e *Entry) []Amount
}
