package env

import (
	"time"

	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/writer"
)

// Event is an occurrence about which the host, the program that opened the store, may want to know: see
// Options.Listener.
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
	Writer writer.Writer
	Err    error
}

// EventKind is the kind of an event.
type EventKind string

// The kinds of events.
const (
	// bytes after the last commit, which no caller was told are stored, were cut off; Path is the file in quarantine/
	// that contains them
	EventTornTail EventKind = "torn tail cut"
	// stored data is damaged; Path is the file or folder, Err the reason, LSN the position if the log is damaged
	EventCorruption EventKind = "corruption found"
	EventSyncFailed EventKind = "sync failed"      // writes wait until a sync succeeds
	EventSyncHealed EventKind = "sync works again" //
	EventSlowSync   EventKind = "slow sync"        // a sync of the log took over a second; Took is the duration
	// this process waited for a lock; Path is the file of the lock, Note names the holder, Took is the duration
	EventLockWait  EventKind = "waited for a lock"
	EventRecovered EventKind = "recovered" // the log was read after a process ended without Close
	EventDiskFull  EventKind = "disk full" //
	// the disk has little free space; Bytes is the number of free bytes, and Note has the number that the store needs.
	// Sent once, and again only after EventSpaceBack
	EventLowSpace  EventKind = "low space"
	EventSpaceBack EventKind = "enough space again" //
	// a damaged segment of the log was restored from its copy; Path is the segment, Note names the copy
	EventHealed EventKind = "log healed"
	// a backup took longer than the log's budget allows, so the log was released; Bytes is the number of bytes by which
	// the log grew meanwhile
	EventHoldBroken EventKind = "log released under a backup"
	// a segment of the log was archived with gaps, or not at all; Path is the segment, Err the reason. The history has
	// a hole; no memory is lost
	EventArchiveGap EventKind = "segment not archived"
	// the store's folder was replaced, so the store writes nothing more: see errs.ErrReplaced; Err describes the
	// difference between the two folders
	EventReplaced EventKind = "store replaced"
	// the oldest history was removed on a full disk; Path is the removed file, Bytes its size. No memory is lost
	EventArchiveCut EventKind = "history removed for space"
	// the oldest history was removed because of history_bytes or history_days; Bytes is its size, and Note names the
	// segments and the setting
	EventArchiveOld EventKind = "old history removed"
	EventFlush      EventKind = "flushed"      // a flush wrote files; Count is their number
	EventFlushError EventKind = "flush failed" // a flush failed and will be retried; Err is the reason
	// the index was written; LSN is the position up to which it covers the log
	EventIndex EventKind = "index written"
	// segments of the index of words were merged, or rewritten without deleted documents; Count is the number of
	// segments, Path their folder, LSN the position up to which they cover the log, Took the duration
	EventMerged EventKind = "words merged"
	// the index was rebuilt from a backup or from the files; Note names the source, Err is the reason, if there is one
	EventRebuilt EventKind = "index rebuilt"
	// a damaged or missing file was restored from the log or the archive; Path is the file
	EventRestored EventKind = "memory file put back"
	// a file that the store did not write was or will be moved to quarantine/; Path is the file's path there, or still
	// its old path
	EventEdit EventKind = "edited file set aside"
	// an edit by hand became a new version; Path is the file, ID the memory, LSN the version
	EventAdopted EventKind = "edited file adopted"
	// the file of the memory ID was deleted by hand; older versions of the memory are kept in the history. If the file
	// was the only copy of the memory, Note says so
	EventDeleted EventKind = "deleted by hand"
	// the store watches the files for edits; Note is the method, notifications or polling, and Err the reason for
	// polling
	EventWatching EventKind = "edits are watched"
	// files and index do not agree; Path is the folder or the file, Count the number of files, and Note the details
	EventDrift EventKind = "files and index do not agree"
	// config.json is not valid: the last valid settings stay in use; if the store is just being opened, the valid
	// members of the file are used
	EventConfig EventKind = "config.json is not valid"
	// the previous index could not be kept as a backup; Err is the reason
	EventBackupFail EventKind = "index backup could not be made"
	// texts could not be embedded; Count is the number of texts, Err the reason. The memories are stored and get their
	// vectors later
	EventEmbedFailed EventKind = "embedding failed"
	EventEmbedWorks  EventKind = "embedding works again" //
	// the embedder failed several times in a row; Count is the number of failures, Err the last one. Writes do not wait
	// for the embedder until Took has passed
	EventEmbedDown EventKind = "embedder down"
	// the vectors were written; Count is the number of all vectors, Path the file
	EventVectors EventKind = "vectors written"
	// the vectors were rebuilt from the memories; Err is the reason
	EventVectorsRebuilt EventKind = "vectors rebuilt"
	// data derived by one of the views could not be written; Path is its folder, Err the reason. The index is written
	// without the data, and the next flush retries
	EventViewError EventKind = "view not written"
	// the index was written without the vectors; they are completed later
	EventVectorsSkipped EventKind = "vectors not written"
	// memories were deleted because they had expired or were older than max_age; Count is the number of memories, Note
	// the reason
	EventSwept EventKind = "old memories deleted"
	// memories were deleted to make room for a write; Count is the number of memories, ID the first of them
	EventEvicted EventKind = "memories evicted"
	// an embedding was padded or cut to the store's dimension; ID is the memory, and Note has the old and the new
	// dimension
	EventFitted EventKind = "embedding padded or cut"
	// commits wait because the files or the index lag behind the log; Bytes is the size of the lag, Note the reason.
	// Sent again only after ten seconds without a waiting commit
	EventSlowed EventKind = "writers slowed"
	// sending the log to the copy elsewhere fails, for the reason Err; or, if Err is nil, sending works again. Sent
	// once for each change
	EventOffsite EventKind = "copy elsewhere"
)

// Event passes ev to the host, the program that opened the store.
func (e *Env) Event(ev Event) { e.Listener(ev) }

// LogEvent passes ev, an event of the log, to the host, the program that opened the store.
func (e *Env) LogEvent(ev wal.Event) {
	e.Event(Event{Kind: EventKind(ev.Kind), Path: ev.Path, LSN: ev.LSN, Note: ev.Note, Bytes: ev.Bytes,
		Took: ev.Took, Err: ev.Err})
}
