// Package flush turns durable entries of the log into files and index. One process at a time does this for all
// processes: the holder of flush.lock. Operations under that lock take a wal.Held: a round, rebuilding the index,
// searching tmp/, and judging files that a round has set aside. Rebuilding the index of a store that is being opened
// (RemakeFrom) takes none, because no other process has the store open then.
//
// # A round
//
//	due       selects what changed since the mark flushed; in the background and at a close only a part (flush.go)
//	put       writes the newest versions to their files, which are durable when wait returns (filing.go)
//	hold      skips scopes of working memory whose files may lag behind the log (lag.go)
//	spill     writes the index, if it is due: a delta, or a new base (spill.go); in the background this runs
//	          concurrently with the following rounds, and has its own mark (follow.go)
//	marks     moves the marks in the checkpoint; the log releases the entries below them
//
// No mark moves before the files that it covers are durable. A failed round is repeated as a whole by the next one,
// deletions first; of a canceled round, the rounds of a close repeat only the part that it had begun.
//
// # Writers
//
// The methods Pressure, Wake, BeatInline and RoundInline implement commit.Pace. Run is the background goroutine. After
// a round it tells the background goroutines of all processes to pause, by the shared page.
//
// # An interrupted purge
//
// Until the purge is done, files that a round displaces are overwritten afterwards, including replaced files of the
// index (overwrite.go, doom.go).
//
// # Layering
//
// The package is above the engine and the vectors, whose files the index names. It is below working memory, which a
// round writes through Host.PutScopes, and below the package that judges edited files, which a round calls through
// Host.JudgeAside.
package flush
