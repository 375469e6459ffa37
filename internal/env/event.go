package env

import (
	"time"

	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/writer"
)

// Event is an occurrence that may be reported to the program that uses the store: see Options.Listener.
type Event struct {
	Kind  EventKind
	Path  string        // relative to the store
	ID    string        // id of the memory, if the event concerns one
	LSN   uint64        // position in the log, if the event concerns one
	Note  string        // details for a user
	Count int           // number of items, for the kinds of events below that mention it
	Bytes int64         // number of bytes, for the kinds of events below that mention it
	Took  time.Duration // duration, for the kinds of events below that mention it
	// Writer is the writer of the version that was restored, or of the write that evicted memories or deleted old ones;
	// Number 0: unknown.
	Writer writer.Writer
	Err    error
}

// EventKind is the kind of an event.
type EventKind string

// The kinds of events.
const (
	EventTornTail   EventKind = "torn tail cut"     // unacknowledged bytes after the last commit
	EventCorruption EventKind = "corruption found"  //
	EventSyncFailed EventKind = "sync failed"       // writes wait until a sync succeeds
	EventSyncHealed EventKind = "sync works again"  //
	EventSlowSync   EventKind = "slow sync"         // a sync of the log took over a second; Took
	EventLockWait   EventKind = "waited for a lock" // Note names the holder
	EventRecovered  EventKind = "recovered"         // the log was read after a process ended without Close
	EventDiskFull   EventKind = "disk full"         //
	// Bytes are free; Note has the number of bytes that should be free. Sent once until there is enough space
	EventLowSpace   EventKind = "low space"
	EventSpaceBack  EventKind = "enough space again"          //
	EventHealed     EventKind = "log healed"                  // Path was restored; Note names the source
	EventHoldBroken EventKind = "log released under a backup" // the backup took longer than the log's budget allows
	EventArchiveGap EventKind = "segment not archived"        // the history has a hole; no memory is lost
	// Err is the difference; the store writes nothing more, see errs.ErrReplaced
	EventReplaced EventKind = "store replaced"
	// Path was removed on a full disk: Bytes of the oldest history; no memory is lost
	EventArchiveCut EventKind = "history removed for space"
	// Bytes of the oldest history were removed because of history_bytes or history_days: see Note
	EventArchiveOld EventKind = "old history removed"
	EventFlush      EventKind = "flushed"       // Count files became durable
	EventFlushError EventKind = "flush failed"  // the flush will be retried
	EventIndex      EventKind = "index written" //
	// Count segments of the index of words were merged, or rewritten without deleted documents; Path, LSN, Took
	EventMerged   EventKind = "words merged"
	EventRebuilt  EventKind = "index rebuilt"         // from a backup or from the files: Note; Err has the reason
	EventRestored EventKind = "memory file put back"  // Path was damaged or missing; restored from log or archive
	EventEdit     EventKind = "edited file set aside" // Path is in quarantine/
	EventAdopted  EventKind = "edited file adopted"   //
	// the file of ID was deleted by hand; the document's versions are kept in the history; Note: the file was the only
	// copy
	EventDeleted  EventKind = "deleted by hand"
	EventWatching EventKind = "edits are watched"            // Note: by notifications or by polling; Err: why by polling
	EventDrift    EventKind = "files and index do not agree" //
	// the last valid settings apply; at open, its valid members
	EventConfig     EventKind = "config.json is not valid"
	EventBackupFail EventKind = "index backup could not be made" //
	// Count texts; the memories are stored and get their vectors later
	EventEmbedFailed EventKind = "embedding failed"
	EventEmbedWorks  EventKind = "embedding works again" //
	// Count failures in a row; writes do not wait for the embedder until Took has passed
	EventEmbedDown      EventKind = "embedder down"
	EventVectors        EventKind = "vectors written"     // Count vectors in all; Path
	EventVectorsRebuilt EventKind = "vectors rebuilt"     // from the memories; Err has the reason
	EventViewError      EventKind = "view not written"    // the index is written without the view; the next flush retries
	EventVectorsSkipped EventKind = "vectors not written" // the index is written without them; they are completed later
	// Count memories; Note says whether they had expired or were older than max_age
	EventSwept   EventKind = "old memories deleted"
	EventEvicted EventKind = "memories evicted"        // Count memories, to make room for a write; ID is the first
	EventFitted  EventKind = "embedding padded or cut" // Note has the old and the new dimension
	// commits wait for the files or the index, which are Bytes behind the log; Note has the reason. Sent again only
	// after some seconds without a waiting commit
	EventSlowed EventKind = "writers slowed"
)

// Event passes an event to the host.
func (e *Env) Event(what Event) { e.Listener(what) }

// LogEvent passes an event of the log to the host.
func (e *Env) LogEvent(what wal.Event) {
	e.Event(Event{Kind: EventKind(what.Kind), Path: what.Path, LSN: what.LSN, Note: what.Note, Bytes: what.Bytes,
		Took: what.Took, Err: what.Err})
}
