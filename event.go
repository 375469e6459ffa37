package varve

import (
	"time"

	"github.com/varve-db/varve/internal/env"
)

// Event is something that a host may want to know of: see Options.Listener.
type Event struct {
	Kind  EventKind
	Path  string        // relative to the store
	ID    string        // of the memory, if it is about one
	LSN   uint64        // position in the log, if it is about one
	Note  string        // what a person should know
	Count int           // of what it is about
	Bytes int64         // likewise
	Took  time.Duration // likewise
	Err   error
}

// EventKind is what happened.
type EventKind string

// The kinds of events.
const (
	EventTornTail    = EventKind(env.EventTornTail)    // unacknowledged bytes behind the last commit
	EventCorruption  = EventKind(env.EventCorruption)  //
	EventSyncFailed  = EventKind(env.EventSyncFailed)  // writes wait until one succeeds
	EventSyncHealed  = EventKind(env.EventSyncHealed)  //
	EventSlowSync    = EventKind(env.EventSlowSync)    // of the log, over a second; Took
	EventLockWait    = EventKind(env.EventLockWait)    // Note names the holder
	EventRecovered   = EventKind(env.EventRecovered)   // the log was read after an end without Close
	EventDiskFull    = EventKind(env.EventDiskFull)    //
	EventLowSpace    = EventKind(env.EventLowSpace)    // Bytes are left; Note says how many it should be. Once, until there is enough
	EventSpaceBack   = EventKind(env.EventSpaceBack)   //
	EventHealed      = EventKind(env.EventHealed)      // Path was put back; Note says from what
	EventHoldBroken  = EventKind(env.EventHoldBroken)  // it took longer than the log's budget allows
	EventArchiveGap  = EventKind(env.EventArchiveGap)  // history has a hole; memories have none
	EventFlush       = EventKind(env.EventFlush)       // Count files became durable
	EventFlushError  = EventKind(env.EventFlushError)  // it is tried again
	EventIndex       = EventKind(env.EventIndex)       //
	EventRebuilt     = EventKind(env.EventRebuilt)     // from a backup or from the files; Note says why
	EventRestored    = EventKind(env.EventRestored)    // Path was damaged or gone; from log or archive
	EventEdit        = EventKind(env.EventEdit)        // Path is in quarantine/
	EventAdopted     = EventKind(env.EventAdopted)     //
	EventDeleted     = EventKind(env.EventDeleted)     // the file of ID was; its versions stay in the history
	EventWatching    = EventKind(env.EventWatching)    // Note says how; Err, why not as it should be
	EventDrift       = EventKind(env.EventDrift)       //
	EventConfig      = EventKind(env.EventConfig)      // the last good one holds; at open, its valid members
	EventBackupFail  = EventKind(env.EventBackupFail)  //
	EventEmbedFailed = EventKind(env.EventEmbedFailed) // Count texts; the memories are stored, and their vectors follow
	EventEmbedWorks  = EventKind(env.EventEmbedWorks)  //
	EventVectors     = EventKind(env.EventVectors)     // Count of them, in all; Path
	EventRevectored  = EventKind(env.EventRevectored)  // from the memories; Err says why
	EventUnvectored  = EventKind(env.EventUnvectored)  // the index goes on without; they are made up for later
	EventViewError   = EventKind(env.EventViewError)   // Path; the index goes on without, and the next flush tries again
	EventSwept       = EventKind(env.EventSwept)       // Count; Note says whether they had expired or were older than max_age
	EventEvicted     = EventKind(env.EventEvicted)     // Count, to make room for one that was written; ID is the first
	EventFitted      = EventKind(env.EventFitted)      // Note says from what to what
)

// publicEvent is what a host hears of an event.
func publicEvent(e env.Event) Event {
	return Event{Kind: EventKind(e.Kind), Path: e.Path, ID: e.ID, LSN: e.LSN, Note: e.Note, Count: e.Count, Bytes: e.Bytes, Took: e.Took, Err: e.Err}
}
