package wal

import "context"

// Machine is the state that results from the entries of a log. The log passes durable entries to the Machine, and asks
// the Machine about the current state to evaluate preconditions.
//
// The log calls one method at a time, and holds a lock on its read position during the call. So the methods must not
// call methods of the same FileLog that need this lock or change the position: Append, CatchUp, Read, AppliedMark and
// SetCheckpoint. The log calls Current, Deletion, Unchanged, Also and Counts in each commit while it holds append.lock
// and other processes cannot write, so these methods must be quick.
type Machine interface {
	// Begin loads the views; the entries from start.Spilled on are applied next. Open calls Begin, under
	// open.lock unless the handle is read-only. Open calls it again after the log was healed or when Agrees
	// returns an error. Later, Begin is called if the part of the log at this process's read position was
	// released, possibly by an Append that holds append.lock.
	//
	// During Open, an error of Begin is returned by Open. Later, it is returned by the CatchUp or Append that
	// found its position released, and the next call tries again.
	Begin(ctx context.Context, start Start) error

	// Agrees checks that the views that Begin loaded belong to this log. No view may reach beyond the end of
	// the log. The chain hash at the end of each view must be that of the log, if chain still knows the hash
	// there. Open calls Agrees once everything durable is applied.
	//
	// An error means that the views do not belong to the log. If no other process has the store open, Begin
	// follows, with start.Rebuild; otherwise Open returns the error.
	Agrees(end Mark, chain func(LSN) (uint64, bool)) error

	// Apply receives the durable entries in order. Keys and values are valid only during the call.
	//
	// An error is returned by the Open or CatchUp that applies the entries; a commit that is already durable
	// still succeeds. The next call begins with the same entries, including those that were applied before the
	// error. Entries are also repeated after a Begin.
	Apply(entries []Entry) error

	// Current returns the LSN of the newest applied entry of a key, 0 if the key is absent. It is also called
	// for the keys that Also and Counts return. An error makes only the batch fail whose precondition is
	// evaluated.
	Current(key string) (LSN, error)

	// Deletion returns the LSN of the newest applied entry of an absent key, which is its deletion, or 0 if
	// that is no longer known. It is called only for a precondition with Chained.
	Deletion(key string) LSN

	// Unchanged reports whether Current would certainly return p.LSN; it returns false if that is not known
	// without a look-up. It is called before Current, for a precondition that has a Hint.
	Unchanged(p Precondition) bool

	// Also returns further keys of which the entry is the newest one. The log uses them for preconditions that it
	// evaluates before the entry is applied; once the entry is applied, the log asks Current about these keys.
	// Also must return the same keys for an entry each time. For an entry that it cannot read it returns no keys:
	// Apply returns the error.
	Also(e *Entry) []string

	// Counts returns the amounts that an entry adds to running totals. A running total is a key for which
	// Current returns the sum that all applied entries have added since some starting point. Once the starting
	// point is set, Counts must return the same amounts for an entry each time.
	Counts(e *Entry) []Amount
}
