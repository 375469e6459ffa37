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

// Options are the options of Open.
type Options struct {
	FS  vfs.FS
	Dir string // the store's folder, which exists; the log owns wal/, checkpoint and parts of quarantine/ in it

	SegmentSize uint64              // segment size of a new log in bytes; segment.DefaultSize when 0
	NewAbove    func() (LSN, error) // position above which a new log starts: the highest LSN found in any view
	UUID        [16]byte            // UUID of a new log
	Create      bool                // create a log if the store has no log
	ReadOnly    bool                // change nothing and hold no lock
	Known       Features            // features that the caller knows besides KnownFeatures
	Lacks       Features            // features of KnownFeatures that the caller does not know, as in an older program
	LockWait    time.Duration       // how long to wait for a lock; 30 s when 0
	Inline      bool                // start no goroutines: prepare space in the caller's goroutine
	FileMode    fs.FileMode         // mode of new files; 0600 when 0
	DirMode     fs.FileMode         // mode of new folders; 0700 when 0
	Archive     Budget              // returns the current budget of archive/; 256 MiB of any age if nil
	// Returns the number of bytes by which archive/ may exceed its budget, to keep segments that the continuous copy
	// of the log in another place does not have yet; see sent.go. nil: 1 GiB.
	Unsent func() int64
	// Reports whether the store has a config.json, which the checkpoint records; nil: it has none.
	Config func() bool
	// Returns the time for comparing the age of copies in the archive; if nil, the clock is used.
	Aged Aged
	// MakeRoom removes something less needed than history when the disk is full. It returns false if there is
	// nothing left to remove.
	MakeRoom  func() bool
	HoldBytes int64 // bytes of log that a backup may keep from being recycled; 1 GiB when 0

	Clock  func() time.Time
	Nonce  func() uint32
	Sleep  func(context.Context, time.Duration) error // time.Sleep that ends with ctx
	Logger *slog.Logger
	Event  func(Event)

	// Synced is called with the duration of each sync of a segment, Waited with the duration of each wait for a
	// lock. Both may be nil.
	Synced, Waited func(time.Duration)

	// Rescue writes the durable entries that are in no document file yet into files. It is called in a
	// separate goroutine if files of the log were removed while the store's folder is still the one that was
	// opened. It may write only documents; no other process of the store puts files in place meanwhile. If
	// again is true, a later call may succeed where this one failed: then Rescue is called again until
	// Folder.Leave, which returns the last error. If Rescue is nil, nothing is rescued.
	Rescue func(ctx context.Context, held *Held) (again bool, err error)

	// Named returns the store's UUID as other files of the store contain it, for a log without a checkpoint.
	// ok is false if no other file has one. If Named is nil, no other file has one.
	Named func() (id [16]byte, ok bool)

	// Resides returns an error if the store was moved from this folder to another one. A handle for writing
	// calls it after it has taken open.lock, before it changes anything: the store may have been moved in the
	// meantime. If Resides is nil, there is no check.
	Resides func() error

	Machine Machine // the state to which entries are applied; required
}

// Budget returns the limits of the archive. bytes is the maximum size of the copies of released segments; if it is 0 or
// negative, no copies are kept. age is the maximum age of the newest entry of a copy; older copies are removed. If age
// is 0, no copy is removed because of its age.
type Budget func() (bytes int64, age time.Duration)

// Aged returns the time with which the age of copies in the archive is compared. It returns the zero time while it is
// not certain that the clock is right, because a single wrong reading of the clock must not remove history. now is the
// reading of the clock. old reports whether the oldest copy is too old if now is the right time. If old is false, but a
// copy was too old at an earlier reading of the clock, that reading was wrong. Aged is called under flush.lock.
type Aged func(now time.Time, old bool) time.Time

// Event is something that happened in the log, which the log reports to the program that opened the store.
type Event struct {
	Kind  EventKind
	Path  string
	LSN   LSN
	Err   error
	Note  string
	Took  time.Duration
	Bytes int64
}

// EventKind is the name of a kind of event.
type EventKind string

// The kinds of events that the log emits.
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

// Start describes where a replay of the log begins. Machine.Begin gets it to load the views as of this position.
type Start struct {
	UUID    [16]byte
	Spilled LSN       // position below which the views must cover all entries
	Sum     uint64    // the chain hash at Spilled
	Fresh   bool      // nothing was ever spilled into the index
	Rebuild bool      // the index must not be used: rebuild it from the files, which are authoritative below Spilled
	Alone   bool      // no other process has the store open, and open.lock is held
	Gone    LSN       // position where a new log begins because the previous log of the store is gone; otherwise 0
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
