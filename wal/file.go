package wal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/page"
	"github.com/varve-db/varve/wal/past"
)

// FileLog is the log in the files of wal/.
type FileLog struct {
	o    Options
	host vfs.Host
	geo  segment.Geometry

	locks       [roles]vfs.Lock
	shared      page.Page
	generation  atomic.Uint64
	slot        int
	hasFeatures bool // wal/features existed when the segments were listed
	hasEnded    bool // wal/ended existed when the segments were listed
	// Features of the store when the recovery or the private replay of this process found them; shared has the current
	// ones.
	required Features
	unmarked LSN        // if there is no checkpoint: position up to which unreadable files may have had frames; 0: none
	marks    Checkpoint // the positions of the checkpoint, as whence found them
	was      before     // state of the page before this process recovered the log
	report   Report
	home     uint64      // inode of wal/, in a process that may write
	private  atomic.Bool // read-only on a log that no process has recovered: the log ends where this process finds its end
	looked   time.Time   // when a private handle last looked for the page

	damage atomic.Pointer[errs.CorruptionError]

	q        queue
	requests sync.Pool         // pool of *request
	writing  []byte            // buffer of one write; guarded by append.lock
	latest   map[string]LSN    // newest entry per key within one write; guarded by append.lock
	gone     map[string]LSN    // the deletion, for a key that is absent after it; guarded by append.lock
	totals   map[string]uint64 // what one write adds to running totals; guarded by append.lock
	refused  atomic.Int64      // time at which raising FeatureFields last failed; 0: never
	syncing  chan struct{}     // a lock for the one goroutine of this process that waits for sync.lock
	state    state
	files    files
	prep     preparer
	free     freer
	unwiped  []error // files that letGo has removed without overwriting them; guarded by flush.lock
	copies   copyNotes
	sentry   sentry
	place    place
}

// Report describes what Open found and did.
type Report struct {
	Created   bool  // Open created a new log
	Recovered bool  // no other process had the log open: it was read, and its end was made durable again
	Clean     bool  // the log ended where it was last attested
	Replayed  int   // number of entries
	Bytes     int64 // bytes of log that were replayed
	TornTail  *TornTail
	// Damage that loses nothing: the archive has a copy of the segment, or the damage is below flushed and the files
	// have the data.
	Healed     *errs.CorruptionError
	HealedFrom string                // the copy from which the segment was restored, "" if the files have the data
	Damage     *errs.CorruptionError // the log is damaged below what was durable: it is read-only
	// the position flushed at the time of opening; everything above it is written to files again
	Flushed LSN
	Mtimes  [Folders]int64
	// The position at which the new log begins, if the log that the checkpoint names is gone; otherwise 0.
	Gone LSN
	// The handle is read-only, in a folder of links whose log belongs to another folder: the handle uses no shared
	// page.
	Linked   *errs.LinkedError
	Features Features // features of the store when it was opened
}

// TornTail describes the bytes that recovery cut off after the last complete batch.
type TornTail struct {
	At    LSN
	Bytes int64
	Path  string // the file to which the bytes were moved
	Err   error  // the error that was found at the end of the log
}

// Report returns what Open found and did.
func (l *FileLog) Report() Report {
	r := l.report
	r.Features |= l.required
	return r
}

// UUID returns the UUID of the store.
func (l *FileLog) UUID() [16]byte { return l.geo.UUID }

// SegmentSize returns the size of a segment in bytes.
func (l *FileLog) SegmentSize() uint64 { return l.geo.Size }

// Limit returns the maximum size of a batch in the log, headers included.
func (l *FileLog) Limit() uint64 { return l.geo.Limit() - segment.StartSize }

// Damage returns the damage that made the log read-only, or nil.
func (l *FileLog) Damage() *errs.CorruptionError { return l.damage.Load() }

// Applied returns the position up to which entries are applied.
func (l *FileLog) Applied() LSN { return l.state.appliedAt.Load() }

// AppliedMark returns the position that Applied returns, with the chain hash there.
func (l *FileLog) AppliedMark() Mark {
	l.state.mu.Lock()
	defer l.state.mu.Unlock()
	return l.state.applied
}

// Read returns the position up to which this process has read or written. For every later entry, Machine.Also
// and Machine.Counts are called after this call.
func (l *FileLog) Read() LSN {
	l.state.mu.Lock()
	defer l.state.mu.Unlock()
	return l.state.w.At.LSN
}

// Durable returns the position up to which the log is durable, through any process.
func (l *FileLog) Durable() LSN {
	if l.private.Load() {
		return l.Applied()
	}
	return l.shared.Durable()
}

// Flushed returns the mark below which the JSON files are authoritative.
func (l *FileLog) Flushed() LSN {
	if l.private.Load() {
		return l.report.Flushed
	}
	return l.shared.Flushed()
}

// Spilled returns the mark below which the index is authoritative.
func (l *FileLog) Spilled() LSN {
	if l.private.Load() {
		return l.state.from.Load()
	}
	return l.shared.Spilled()
}

// Backlog returns the number of bytes of log that a replay would have to read.
func (l *FileLog) Backlog() int64 {
	if l.private.Load() {
		return int64(l.Applied() - l.state.from.Load())
	}
	spilled := l.Spilled()
	return int64(max(l.shared.Tail(), spilled) - spilled) // the tail is 0 while another process recovers the log
}

// Poisoned reports whether a sync has failed and none has succeeded since.
func (l *FileLog) Poisoned() bool {
	return l.shared.Mapped() && l.shared.Poison() == page.SyncFailed
}

// files is the set of open segments.
type files struct {
	mu    sync.Mutex
	open  map[uint64]vfs.File
	known map[uint64]fileID // segments whose open file was compared with the name: an open file keeps its identity
}

// fileID identifies the file behind an open handle.
type fileID struct {
	file     vfs.File
	ino, dev uint64
}

// isKnown reports whether the file that has the name of a segment is the one that was compared before.
func (l *FileLog) isKnown(number uint64, f vfs.File, at vfs.Info) bool {
	l.files.mu.Lock()
	defer l.files.mu.Unlock()
	return l.files.known[number] == fileID{f, at.Ino, at.Dev}
}

// know remembers the identity of the open file of a segment.
func (l *FileLog) know(number uint64, f vfs.File, info vfs.Info) {
	l.files.mu.Lock()
	defer l.files.mu.Unlock()
	if l.files.open[number] == f {
		l.files.known[number] = fileID{f, info.Ino, info.Dev}
	}
}

// hasOpen reports whether a segment is open: a write goes into the open file, whichever file has its name now.
func (l *FileLog) hasOpen(number uint64) bool {
	l.files.mu.Lock()
	defer l.files.mu.Unlock()
	return l.files.open[number] != nil
}

// segment returns the open file of a segment. If the segment is missing, the error is past.ErrNoSegment.
func (l *FileLog) segment(number uint64) (vfs.File, error) {
	l.files.mu.Lock()
	defer l.files.mu.Unlock()
	if f := l.files.open[number]; f != nil {
		return f, nil
	}
	flag := os.O_RDWR
	if l.o.ReadOnly {
		flag = os.O_RDONLY
	}
	f, err := l.o.FS.OpenFile(l.o.wal(segment.Name(number)), flag, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("segment %d: %w", number, past.ErrNoSegment)
	}
	if err != nil {
		return nil, l.ioError("opening", l.o.wal(segment.Name(number)), err)
	}
	l.files.open[number] = f
	return f, nil
}

// source returns a segment for a walker.
func (l *FileLog) source(number uint64) (past.Source, error) { return l.segment(number) }

// forgetFiles closes the segments below a number, which were recycled; a reader that still uses one finds
// frames with the wrong seed.
func (l *FileLog) forgetFiles(below uint64) {
	l.files.mu.Lock()
	defer l.files.mu.Unlock()
	for _, n := range slices.Sorted(maps.Keys(l.files.open)) { // in order, so that a test run can be repeated
		if n < below {
			l.files.open[n].Close()
			delete(l.files.open, n)
			delete(l.files.known, n)
		}
	}
}

// CloseReleased closes the segments that are completely below spilled. Otherwise a process would keep files
// open that another process has recycled or removed.
func (a Archive) CloseReleased() {
	l := a.l
	if spilled := l.Spilled(); spilled > 0 {
		l.forgetFiles(l.geo.Number(spilled - 1))
	}
}

func (l *FileLog) closeFiles() {
	l.forgetFiles(1 << 63)
}

// ioError wraps an error of the system with what was being done, the path and a sentinel.
func (l *FileLog) ioError(doing, path string, err error) error {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case vfs.IsDiskFull(err):
		return l.noSpace(fmt.Errorf("%s %s: %w", doing, path, err))
	case vfs.IsPermission(err):
		return fmt.Errorf("%s %s: %w: %w", doing, path, errs.ErrPermission, err)
	case vfs.IsUnopened(err) && !errors.Is(err, errs.ErrTooManyFiles):
		return fmt.Errorf("%s %s: %w: %w", doing, path, errs.ErrTooManyFiles, err)
	}
	return fmt.Errorf("%s %s: %w", doing, path, err)
}

// Past returns the past of this log.
func (l *FileLog) Past() *past.Log {
	return &past.Log{FS: l.o.FS, Dir: l.o.walDir(), Geometry: l.geo}
}
