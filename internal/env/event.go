package env

import (
	"time"

	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/writer"
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
	// Writer is the writer of the version that it is about, or of the change; Number 0: unknown.
	Writer writer.Writer
	Err    error
}

// EventKind is what happened.
type EventKind string

// The kinds of events.
const (
	EventTornTail   EventKind = "torn tail cut"     // unacknowledged bytes behind the last commit
	EventCorruption EventKind = "corruption found"  //
	EventSyncFailed EventKind = "sync failed"       // writes wait until one succeeds
	EventSyncHealed EventKind = "sync works again"  //
	EventSlowSync   EventKind = "slow sync"         // of the log, over a second; Took
	EventLockWait   EventKind = "waited for a lock" // Note names the holder
	EventRecovered  EventKind = "recovered"         // the log was read after an end without Close
	EventDiskFull   EventKind = "disk full"         //
	// Bytes are left; Note says how many it should be. Once, until there is enough
	EventLowSpace   EventKind = "low space"
	EventSpaceBack  EventKind = "enough space again"          //
	EventHealed     EventKind = "log healed"                  // Path was put back; Note says from what
	EventHoldBroken EventKind = "log released under a backup" // it took longer than the log's budget allows
	EventArchiveGap EventKind = "segment not archived"        // history has a hole; memories have none
	// Err is the difference; the store writes nothing more, see errs.ErrReplaced
	EventReplaced EventKind = "store replaced"
	// Path, a copy of old log with Bytes, on a full disk; memories are complete
	EventArchiveCut EventKind = "history removed for space"
	// Bytes of copies of old log; Note says which, and by which setting
	EventArchiveOld EventKind = "old history removed"
	EventFlush      EventKind = "flushed"       // Count files became durable
	EventFlushError EventKind = "flush failed"  // it is tried again
	EventIndex      EventKind = "index written" //
	// Count segments of the index of words, or one written without what is deleted; Path, LSN, Took
	EventMerged   EventKind = "words merged"
	EventRebuilt  EventKind = "index rebuilt"         // from a backup or from the files; Note says why
	EventRestored EventKind = "memory file put back"  // Path was damaged or gone; from log or archive
	EventEdit     EventKind = "edited file set aside" // Path is in quarantine/
	EventAdopted  EventKind = "edited file adopted"   //
	// the file of ID was; its versions stay in the history, and Note says when it was the only copy
	EventDeleted  EventKind = "deleted by hand"
	EventWatching EventKind = "edits are watched"            // Note: by notifications or by polling; Err: why by polling
	EventDrift    EventKind = "files and index do not agree" //
	// the last valid settings apply; at open, its valid members
	EventConfig     EventKind = "config.json is not valid"
	EventBackupFail EventKind = "index backup could not be made" //
	// Count texts; the memories are stored, and their vectors follow
	EventEmbedFailed EventKind = "embedding failed"
	EventEmbedWorks  EventKind = "embedding works again" //
	// Count failures in a row; it is not asked for as long as Took
	EventEmbedDown      EventKind = "embedder down"
	EventVectors        EventKind = "vectors written"     // Count of them, in all; Path
	EventVectorsRebuilt EventKind = "vectors rebuilt"     // from the memories; Err says why
	EventViewError      EventKind = "view not written"    // the index goes on without; the next flush tries again
	EventVectorsSkipped EventKind = "vectors not written" // the index goes on without; they are made up for later
	// Count; Note says whether they had expired or were older than max_age
	EventSwept   EventKind = "old memories deleted"
	EventEvicted EventKind = "memories evicted"        // Count, to make room for one that was written; ID is the first
	EventFitted  EventKind = "embedding padded or cut" // Note says from what to what
	// commits wait for the files or the index, Bytes behind the log; Note says why. Once, until nobody has waited for a
	// while
	EventSlowed EventKind = "writers slowed"
)

// Event tells the host.
func (e *Env) Event(what Event) { e.Listener(what) }

// LogEvent passes an event of the log on.
func (e *Env) LogEvent(what wal.Event) {
	e.Event(Event{Kind: EventKind(what.Kind), Path: what.Path, LSN: what.LSN, Note: what.Note, Bytes: what.Bytes,
		Took: what.Took, Err: what.Err})
}
