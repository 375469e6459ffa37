package wal

import (
	"context"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

// Options is what a file log is opened with.
type Options struct {
	FS  vfs.FS
	Dir string // the store's folder, which exists; the log has wal/, checkpoint and parts of quarantine/ in it

	SegmentSize uint64              // for a new log; segment.DefaultSize when 0
	NewAbove    func() (LSN, error) // a new log starts above this: the highest LSN found in any view
	UUID        [16]byte            // for a new log
	Create      bool                // create a log if there is none
	ReadOnly    bool                // change nothing, hold nothing
	Known       Features            // the features that the caller knows besides KnownFeatures
	Lacks       Features            // those of KnownFeatures that it lacks, as an older program
	LockWait    time.Duration       // how long to wait for a lock; 30 s when 0
	Inline      bool                // start no goroutines: prepare space in the caller's goroutine
	FileMode    fs.FileMode         // 0600 when 0
	DirMode     fs.FileMode         // 0700 when 0
	Archive     Budget              // of archive/, as it is at the moment; 256 MiB of any age when nil
	Unsent      func() int64        // bytes that archive/ may have beyond its budget, see sent.go; 1 GiB when nil
	Config      func() bool         // the store has a config.json, which the checkpoint records; never when nil
	Aged        Aged                // by which the age of copies is judged; the clock when nil
	// remove something less needed than history, for a full disk; false: there is nothing left
	MakeRoom  func() bool
	HoldBytes int64 // bytes of log that a backup may keep from being recycled; 1 GiB when 0

	Clock  func() time.Time
	Nonce  func() uint32
	Sleep  func(context.Context, time.Duration) error // time.Sleep that ends with ctx
	Logger *slog.Logger
	Event  func(Event)

	// Synced and Waited receive how long a sync of a segment took, and a wait for a lock that another process had. nil:
	// nothing does.
	Synced, Waited func(time.Duration)

	// Rescue puts what is durable and in no file yet into files. It is called in a goroutine of its own,
	// when files of the log were removed and the store's folder is still the one that was opened: nothing but
	// documents may be written, and no other process of the store puts files in place meanwhile. again reports
	// that a later call may do what this one could not: then it is called again until Folder.Leave, whose error
	// the last one is. nil: nothing is rescued.
	Rescue func(ctx context.Context, held *Held) (again bool, err error)

	// Named returns the UUID that other files of the store name, for a log without a checkpoint. nil: none do.
	Named func() (id [16]byte, ok bool)

	// Resides returns an error if the store of the folder is elsewhere. A handle that writes calls it when it
	// has open.lock, before it changes anything: the store may have been moved while it waited. nil: it is not
	// asked.
	Resides func() error

	Machine Machine // the state to which entries are applied; required
}

// Budget returns how many bytes the copies of released segments may take, none when it is 0 or
// negative, and the age of its newest entry at which a copy is removed; 0 means never.
type Budget func() (bytes int64, age time.Duration)

// Aged returns the time of day by which the age of copies is judged, the zero time if none is known:
// one reading of the clock must not remove history. It is called under flush.lock, with the present
// time of day; old reports whether a copy is too old by that. A call without an old copy tells that an
// earlier reading, by which one was, was wrong.
type Aged func(now time.Time, old bool) time.Time

// Event is something of which a host may want to be notified.
type Event struct {
	Kind  EventKind
	Path  string
	LSN   LSN
	Err   error
	Note  string
	Took  time.Duration
	Bytes int64
}

// EventKind is what happened.
type EventKind string

// The kinds of events of the log.
const (
	EventTornTail   EventKind = "torn tail cut"
	EventCorruption EventKind = "corruption found"
	EventSyncFailed EventKind = "sync failed"
	EventSyncHealed EventKind = "sync works again"
	EventSlowSync   EventKind = "slow sync"
	EventLockWait   EventKind = "waited for a lock"
	EventRecovered  EventKind = "recovered"
	EventDiskFull   EventKind = "disk full"
	EventHealed     EventKind = "log healed"
	EventHoldBroken EventKind = "log released under a backup"
	EventArchiveGap EventKind = "segment not archived"
	EventArchiveCut EventKind = "history removed for space"
	EventReplaced   EventKind = "store replaced"
	EventArchiveOld EventKind = "old history removed"
)

// Start is where the replay begins.
type Start struct {
	UUID    [16]byte
	Spilled LSN       // the views must cover everything below
	Sum     uint64    // the chain hash there
	Fresh   bool      // nothing was ever spilled
	Rebuild bool      // the index must not be used: rebuild it from the files, which are authoritative below Spilled
	Alone   bool      // no other process has the store open, and open.lock is held
	Gone    LSN       // the log that the store had is gone: a new one begins here; 0 when it is not
	Past    *past.Log // the log, as far back as it is kept
}

func (o *Options) fill() {
	if o.SegmentSize == 0 {
		o.SegmentSize = segment.DefaultSize
	}
	o.Known = (o.Known | KnownFeatures) &^ o.Lacks
	if o.LockWait == 0 {
		o.LockWait = 30 * time.Second
	}
	if o.FileMode == 0 {
		o.FileMode = 0o600
	}
	if o.DirMode == 0 {
		o.DirMode = 0o700
	}
	if o.Archive == nil {
		o.Archive = func() (int64, time.Duration) { return 256 << 20, 0 }
	}
	if o.Unsent == nil {
		o.Unsent = func() int64 { return 1 << 30 }
	}
	if o.Config == nil {
		o.Config = func() bool { return false }
	}
	if o.Aged == nil {
		o.Aged = func(now time.Time, _ bool) time.Time { return now }
	}
	if o.HoldBytes == 0 {
		o.HoldBytes = 1 << 30
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Nonce == nil {
		o.Nonce = rand.Uint32
	}
	if o.Sleep == nil {
		o.Sleep = vfs.Sleep
	}
	if o.Event == nil {
		o.Event = func(Event) {}
	}
}

func (o *Options) walDir() string { return filepath.Join(o.Dir, "wal") }

func (o *Options) wal(name string) string { return filepath.Join(o.Dir, "wal", name) }
