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
	// bytes after the last commit were cut off the log; they belonged to no acknowledged write. Path is the file in
	// quarantine/ that has these bytes
	EventTornTail = EventKind(env.EventTornTail)
	// stored data is damaged; Path is the file or folder, Err the reason, LSN the position if the log is damaged
	EventCorruption = EventKind(env.EventCorruption)
	EventSyncFailed = EventKind(env.EventSyncFailed) // writes wait until a sync succeeds
	EventSyncHealed = EventKind(env.EventSyncHealed) // a sync succeeded again; writes continue
	// a sync of the log took over a second; Took is the duration
	EventSlowSync = EventKind(env.EventSlowSync)
	// this process waited for a lock; Path is the file of the lock, Note names the process that held it, Took is the
	// duration
	EventLockWait = EventKind(env.EventLockWait)
	// the log was read after a process ended without Close
	EventRecovered = EventKind(env.EventRecovered)
	// a write failed because the disk has no free space or no free inodes; Err is a DiskFullError
	EventDiskFull = EventKind(env.EventDiskFull)
	// the disk has little free space; Bytes is the number of free bytes, and Note has the number of bytes that should
	// be free. The event is sent once; it is sent again only if the disk had enough space in between
	EventLowSpace  = EventKind(env.EventLowSpace)
	EventSpaceBack = EventKind(env.EventSpaceBack) // there is enough space again
	// a damaged segment of the log was restored from its copy; Path is the segment, Note names the copy
	EventHealed = EventKind(env.EventHealed)
	// a backup took longer than the log's budget allows, so the store released log that the backup needed; Bytes is the
	// number of bytes that were added to the log meanwhile
	EventHoldBroken = EventKind(env.EventHoldBroken)
	// a segment of the log was archived with gaps, or not at all; Path is the segment, Err the reason. The history has
	// a hole; no memory is lost
	EventArchiveGap = EventKind(env.EventArchiveGap)
	// the store's folder was replaced, so the store writes nothing more: see ErrReplaced; Err says what differs
	EventReplaced = EventKind(env.EventReplaced)
	// the oldest history was removed on a full disk; Path is the removed file, Bytes its size. No memory is lost
	EventArchiveCut = EventKind(env.EventArchiveCut)
	// the oldest history was removed because of history_bytes or history_days; Bytes is its size, and Note names the
	// segments and the setting
	EventArchiveOld = EventKind(env.EventArchiveOld)
	EventFlush      = EventKind(env.EventFlush) // a flush wrote files; Count is their number
	// a flush failed and will be retried; Err is the reason
	EventFlushError = EventKind(env.EventFlushError)
	// the index was written; LSN is the position up to which it covers the log
	EventIndex = EventKind(env.EventIndex)
	// segments of the word index were merged, or rewritten without deleted documents; Count is the number of segments,
	// Path their folder, LSN the position up to which they cover the log, Took the duration
	EventMerged = EventKind(env.EventMerged)
	// the index was rebuilt from a backup or from the files; Note names the source, Err is the reason or nil
	EventRebuilt = EventKind(env.EventRebuilt)
	// a damaged or missing file was restored from the log or the archive; Path is the file
	EventRestored = EventKind(env.EventRestored)
	// a file that the store did not write was moved to quarantine/, or will be; Path is its path in quarantine/ or, if
	// it is not moved yet, its path in the store
	EventEdit = EventKind(env.EventEdit)
	// an edit by hand became a new version; Path is the file, ID the memory, LSN the version
	EventAdopted = EventKind(env.EventAdopted)
	// the file of the memory ID was deleted by hand; its versions are kept in the history. Note is set if the file was
	// the only copy
	EventDeleted = EventKind(env.EventDeleted)
	// the store watches the files for edits; Note is the method, notifications or polling, and Err is the reason for
	// polling
	EventWatching = EventKind(env.EventWatching)
	// the files and the index do not agree; Path is the folder or the file, Count the number of files, and Note the
	// details
	EventDrift = EventKind(env.EventDrift)
	// config.json is invalid. The last valid configuration remains in force. If the store is just being opened, the
	// valid members of the file apply, with defaults for the others
	EventConfig = EventKind(env.EventConfig)
	// the previous index could not be kept as a backup; Err is the reason
	EventBackupFail = EventKind(env.EventBackupFail)
	// texts could not be embedded; Count is their number, Err the reason. The memories are stored and get their vectors
	// later
	EventEmbedFailed = EventKind(env.EventEmbedFailed)
	EventEmbedWorks  = EventKind(env.EventEmbedWorks) // the embedding service answers again
	// the embedder failed several times in a row; Count is the number of failures, Err the last error. Writes do not
	// wait for the embedder until Took has passed
	EventEmbedDown = EventKind(env.EventEmbedDown)
	// the vector file was written; Count is the number of all vectors, Path the file
	EventVectors = EventKind(env.EventVectors)
	// the vectors were rebuilt from the memories; Err is the reason
	EventVectorsRebuilt = EventKind(env.EventVectorsRebuilt)
	// the index was written without the vectors; a later flush writes them
	EventVectorsSkipped = EventKind(env.EventVectorsSkipped)
	// data that is derived from the documents, such as the word index, could not be written; Path is its folder, Err
	// the reason. The index is written without the data, and the next flush retries
	EventViewError = EventKind(env.EventViewError)
	// memories were deleted because they had expired or were older than max_age; Count is their number, Note the reason
	EventSwept = EventKind(env.EventSwept)
	// memories were deleted to make room for a write; Count is their number, ID the first of them
	EventEvicted = EventKind(env.EventEvicted)
	// an embedding was padded or cut to the store's dimension; ID is the memory, and Note has the old and the new
	// dimension
	EventFitted = EventKind(env.EventFitted)
	// commits wait because the files or the index lag behind the log; Bytes is the number of bytes of log that the
	// files or the index lack, Note the reason. The event is sent again only after ten seconds in which no commit has
	// waited
	EventSlowed = EventKind(env.EventSlowed)
	// sending the log to the remote copy failed for the reason Err or, if Err is nil, works again. The event is sent
	// once for each change between failing and working
	EventOffsite = EventKind(env.EventOffsite)
)

// publicEvent returns an event as a host receives it.
func publicEvent(e env.Event) Event {
	return Event{Kind: EventKind(e.Kind), Path: e.Path, ID: e.ID, LSN: e.LSN, Note: e.Note, Count: e.Count, Bytes: e.Bytes,
		Took: e.Took, Writer: e.Writer, Err: e.Err}
}
