// Package flush turns durable entries of the log into files and index. Any process may do this for all; the holder of
// flush.lock does. Operations under that lock take a wal.Held: a round, rebuilding the index, searching tmp/, and
// judging files that a round has set aside. Rebuilding the index of a store that is being opened (RemakeFrom) takes
// none: then no other process has it open.
//
// # A round
//
//	due       what changed since the mark flushed; in the background and at a close only a part (flush.go)
//	put       newest versions are written to their files, durable when wait returns (filing.go)
//	hold      working memory that may lag is skipped (lag.go)
//	spill     the index, if it is due: a delta, or a new base (spill.go); in the background beside
//	          the rounds that follow, with its own mark (follow.go)
//	marks     the checkpoint moves, the log releases the entries below
//
// No mark moves before the files that it covers are durable. A failed round is repeated as a whole by the next one,
// deletions first; a canceled round is repeated by the rounds of a close, as far as it got.
//
// # Writers
//
// Pressure, Wake, BeatInline and RoundInline are commit.Pace. Run is the background goroutine; after a round the
// processes tell each other to pause.
//
// # An interrupted purge
//
// Until the purge is done, files that a round displaces are overwritten afterwards, including replaced files of the
// index (overwrite.go, doom.go).
//
// # Layering
//
// Above the engine and the vectors, whose files the index names; below working memory, which a round writes through
// Host.PutScopes, and below the package that judges edited files, which a round calls (Host.JudgeAside).
package flush
