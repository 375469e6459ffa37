package varve

import (
	"time"

	"github.com/varve-db/varve/internal/env"
)

// Event is an occurrence that a host may want to know: see Options.Listener.
type Event struct {
	Kind  EventKind
	Path  string        // relative to the store
	ID    string        // id of the memory, if the event concerns one
	LSN   uint64        // position in the log, if the event concerns one
	Note  string        // details for a user
	Count int           // number of items, for the kinds of events whose comment names it
	Bytes int64         // number of bytes, for the kinds of events whose comment names it
	Took  time.Duration // duration, for the kinds of events whose comment names it
	// Writer is the writer of the version that was restored, or of the write that evicted memories or deleted old ones;
	// Number 0: unknown.
	Writer Writer
	Err    error
}

// EventKind is the kind of an event.
type EventKind string

// The kinds of events.
const (
	EventTornTail   = EventKind(env.EventTornTail)   // unacknowledged bytes after the last commit
	EventCorruption = EventKind(env.EventCorruption) // stored data is damaged: Path, LSN; Err says how
	EventSyncFailed = EventKind(env.EventSyncFailed) // writes wait until a sync succeeds
	EventSyncHealed = EventKind(env.EventSyncHealed) // a sync succeeded again; writes continue
	EventSlowSync   = EventKind(env.EventSlowSync)   // a sync of the log took over a second; Took
	EventLockWait   = EventKind(env.EventLockWait)   // Note names the holder
	EventRecovered  = EventKind(env.EventRecovered)  // the log was read after a process ended without Close
	// a write failed for want of space or of inodes; Err is a DiskFullError
	EventDiskFull = EventKind(env.EventDiskFull)
	// Bytes are free; Note has how many there should be. Sent once until there is enough space
	EventLowSpace   = EventKind(env.EventLowSpace)
	EventSpaceBack  = EventKind(env.EventSpaceBack)  // there is enough space again
	EventHealed     = EventKind(env.EventHealed)     // Path was restored; Note names the source
	EventHoldBroken = EventKind(env.EventHoldBroken) // a backup took longer than the log's budget allows
	EventArchiveGap = EventKind(env.EventArchiveGap) // the history has a hole; no memory is lost
	// the folder was replaced: Err is the difference, and the store writes nothing more; see ErrReplaced
	EventReplaced = EventKind(env.EventReplaced)
	// Path was removed on a full disk: Bytes of the oldest history; no memory is lost
	EventArchiveCut = EventKind(env.EventArchiveCut)
	// Bytes of the oldest history were removed because of history_bytes or history_days: see Note
	EventArchiveOld = EventKind(env.EventArchiveOld)
	EventFlush      = EventKind(env.EventFlush)      // Count files became durable
	EventFlushError = EventKind(env.EventFlushError) // the flush will be retried
	EventIndex      = EventKind(env.EventIndex)      // the index was written as of LSN
	// Count segments of the index of words were merged, or rewritten without deleted documents; Path, LSN, Took
	EventMerged  = EventKind(env.EventMerged)
	EventRebuilt = EventKind(env.EventRebuilt) // from a backup or from the files; Note has the source
	// Path was damaged or missing; restored from the log or the archive
	EventRestored = EventKind(env.EventRestored)
	EventEdit     = EventKind(env.EventEdit)    // Path is in quarantine/
	EventAdopted  = EventKind(env.EventAdopted) // an edit of Path by hand became a new version of ID
	// the file of ID was deleted; its versions are kept in the history; Note: it was the only copy
	EventDeleted  = EventKind(env.EventDeleted)
	EventWatching = EventKind(env.EventWatching) // Note: by notifications or by polling; Err: why by polling
	// files and index do not agree: Count files in Path, or Note has the details
	EventDrift = EventKind(env.EventDrift)
	// config.json is invalid: the last valid one remains in force; at open, its valid members
	EventConfig     = EventKind(env.EventConfig)
	EventBackupFail = EventKind(env.EventBackupFail) //
	// Count texts; the memories are stored and get their vectors later
	EventEmbedFailed = EventKind(env.EventEmbedFailed)
	EventEmbedWorks  = EventKind(env.EventEmbedWorks) // the embedding service answers again
	// Count failures in a row; writes do not wait for it until Took has passed; Err is the last
	EventEmbedDown      = EventKind(env.EventEmbedDown)
	EventVectors        = EventKind(env.EventVectors)        // Count vectors in all; Path
	EventVectorsRebuilt = EventKind(env.EventVectorsRebuilt) // the vectors were rebuilt from the memories; Err says why
	// the index is written without the vectors; they are completed later
	EventVectorsSkipped = EventKind(env.EventVectorsSkipped)
	// Path; the index is written without it, and the next flush retries
	EventViewError = EventKind(env.EventViewError)
	// Count memories; Note says whether they had expired or were older than max_age
	EventSwept   = EventKind(env.EventSwept)
	EventEvicted = EventKind(env.EventEvicted) // Count memories, to make room for a write; ID is the first
	EventFitted  = EventKind(env.EventFitted)  // Note has the old and the new dimension
	// commits wait for the files or the index, which are Bytes behind the log; Note has the reason. Sent again only
	// after ten seconds without a waiting commit
	EventSlowed = EventKind(env.EventSlowed)
)

// publicEvent returns an event as a host receives it.
func publicEvent(e env.Event) Event {
	return Event{Kind: EventKind(e.Kind), Path: e.Path, ID: e.ID, LSN: e.LSN, Note: e.Note, Count: e.Count, Bytes: e.Bytes,
		Took: e.Took, Writer: e.Writer, Err: e.Err}
}
