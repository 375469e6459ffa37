package wal

import "context"

// Machine is the state that results from the entries of a log: the views above the log. The log
// passes durable entries to the Machine, and asks whether preconditions hold.
//
// The log calls one method at a time, with its place in the log locked: no method may call
// one of the same FileLog that reads on or asks for that place (Append, CatchUp, Read,
// AppliedMark, SetCheckpoint). Current, Deletion, Unchanged, Also and Counts are called in
// each commit while append.lock keeps other processes from writing: they must be quick.
type Machine interface {
	// Begin loads the views; the entries from start.Spilled on are applied next. Open calls
	// it, under open.lock unless the handle is read-only, and again after it has healed the
	// log or when Agrees refuses. Later it is called when this process's place in the log
	// was released meanwhile, also by an Append that has append.lock.
	//
	// An error is that of Open; later it is that of the CatchUp or Append that found the
	// place gone, and the next call tries again.
	Begin(ctx context.Context, start Start) error

	// Agrees checks that the views that Begin loaded belong to this log: none beyond its end, and
	// the chain hash where they end is the log's, as far as chain still knows it. Open asks once
	// all that is durable is applied.
	//
	// An error means that they are not. Where no other process has the store open, Begin
	// follows, with start.Rebuild; otherwise it is the error of Open.
	Agrees(end Mark, chain func(LSN) (uint64, bool)) error

	// Apply gets the durable entries in order. Keys and values are valid during the call only.
	//
	// An error becomes the error of the Open or CatchUp that applies; a commit that is durable by
	// then still succeeds. The next call begins with the same entries, including those that were
	// applied before the error. After a Begin, too, entries are repeated.
	Apply(entries []Entry) error

	// Current is the LSN of the newest applied entry of a key, 0 when the key is absent.
	// Also and Counts have it asked for keys of their own. An error refuses the batch whose
	// precondition asked, and no other.
	Current(key string) (LSN, error)

	// Deletion is the LSN of the newest applied entry of a key that is absent, 0 when that is no
	// longer known. It is called only for a precondition that is Chained.
	Deletion(key string) LSN

	// Unchanged reports that Current would certainly return p.LSN; false if this is not known
	// without a look-up. It is called before Current, for a precondition that has a Hint.
	Unchanged(p Precondition) bool

	// Also names further keys whose newest entry an entry is to count for, for preconditions that
	// are judged before it is applied; Current has an answer of its own for them. It must return
	// the same for an entry each time. An entry that it cannot read has no keys: Apply returns the
	// error.
	Also(e *Entry) []string

	// Counts says what an entry adds to running totals: to keys of which Current says how much all
	// applied entries have added, from wherever it began to count. It must return the same for an
	// entry each time, once it has begun.
	Counts(e *Entry) []Amount
}
