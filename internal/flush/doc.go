// Package flush turns what is durable in the log into files and index. Any process may do
// it for all; the holder of flush.lock does. What is done under that lock takes a wal.Held: a
// round, rebuilding the index, looking through tmp/, and the judging of what a round has set
// aside. Rebuilding the index of a store that is being opened (RemakeFrom) takes none: then no
// other process has it open.
//
// # A round
//
//	due       what changed since the mark flushed, in the background a part (flush.go)
//	put       newest versions go into their files, durable when wait returns (filing.go)
//	hold      working memory that may lag is left out (lag.go)
//	spill     the index, if it is due: a delta, or a new base (spill.go)
//	marks     the checkpoint moves, the log lets go of what is below
//
// Nothing moves before what it rests on is durable. A round that fails is repeated as a
// whole by the next one, deletions first.
//
// # An index that is made again
//
// From the newest older one that is sound, and what the log has since (fallback.go): that
// keeps every version. Else from the files, which know no versions (rebuild.go), and are
// given those that log, index or backups still know (versions.go).
//
// # Writers
//
// Pressure, Wake, BeatInline and RoundInline are commit.Pace. Run is the goroutine of the
// background; the processes tell each other to rest after a round.
//
// # A purge that was cut
//
// What a round displaces then is overwritten behind it, also what it replaces of the index
// (overwrite.go, doom.go).
//
// # Where it stands
//
// Above the engine and the vectors, whose files the index names; below working memory,
// which a round writes through Scopes, and below the judging of files that somebody
// edited, which a round asks for (Judge).
package flush
