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

// FileLog is the write-ahead log of a store, kept in the files of wal/.
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
	// Features of the store, as the recovery or the private replay of this process found them. The shared page
	// has the current features.
	required Features
	unmarked LSN        // without a checkpoint: position up to which unreadable files may have had frames; 0: none
	marks    Checkpoint // the checkpoint with which the log was opened: see Marks
	was      before     // state of the page before this process recovered the log
	report   Report
	home     uint64 // inode of wal/, in a process that may write
	// Read-only handle on a log that no process has recovered: the log ends where this process finds its end.
	private atomic.Bool
	looked  time.Time // time of the last search for the page, in a private handle

	damage atomic.Pointer[errs.CorruptionError]

	q        queue
	requests sync.Pool      // unused *request values
	writing  []byte         // buffer of one write; guarded by append.lock
	latest   map[string]LSN // position of the newest entry per key within one write; guarded by append.lock
	// Position of the deletion, for a key that the write deletes; guarded by append.lock.
	gone    map[string]LSN
	totals  map[string]uint64 // amounts that one write adds to running totals; guarded by append.lock
	refused atomic.Int64      // time at which raising FeatureFields last failed; 0: it never failed
	syncing chan struct{}     // held by the one goroutine of this process that waits for sync.lock
	state   state
	files   files
	prep    preparer
	free    freer
	// Errors from removing files without overwriting them first, see letGo; guarded by flush.lock.
	unwiped []error
	copies  copyNotes
	sentry  sentry
	place   place
}

// Report describes what Open found in the log and what it repaired.
type Report struct {
	Created   bool  // Open created a new log
	Recovered bool  // no other process had the log open: it was read, and its end was made durable again
	Clean     bool  // the log ended at the position that the checkpoint attests, and all entries were in files
	Replayed  int   // number of replayed entries
	Bytes     int64 // bytes of log that were replayed
	TornTail  *TornTail
	// Damage without loss: the archive has a copy of the damaged segment, or the damage is below the position
	// Flushed and the document files have the data.
	Healed *errs.CorruptionError
	// Name of the copy from which the segment was restored, "" if the files have the data.
	HealedFrom string
	Damage     *errs.CorruptionError // damage of frames that were durable; the log is read-only because of it
	// Position below which all entries were in files when the log was opened; all later entries are written to
	// files again.
	Flushed LSN
	Mtimes  [Folders]int64
	// Position where the new log begins if the log that the checkpoint names is gone; otherwise 0.
	Gone LSN
	// Set for a read-only handle in a folder whose files are hard links and whose log belongs to another
	// folder. The handle does not follow the shared page.
	Linked   *errs.LinkedError
	Features Features // features of the store when it was opened
}

// TornTail describes the bytes after the last complete batch, which a recovery removed from the end of the log.
type TornTail struct {
	At    LSN
	Bytes int64
	Path  string // path of the file to which the bytes were moved
	Err   error  // the error at the first of these bytes
}

// Report returns what Open found in the log and what it repaired.
func (l *FileLog) Report() Report {
	r := l.report
	r.Features |= l.required
	return r
}

// UUID returns the UUID of the store.
func (l *FileLog) UUID() [16]byte { return l.geo.UUID }

// SegmentSize returns the size of a segment in bytes.
func (l *FileLog) SegmentSize() uint64 { return l.geo.Size }

// Limit returns the maximum size of a batch in the log in bytes, headers included.
func (l *FileLog) Limit() uint64 { return l.geo.Limit() - segment.StartSize }

// Damage returns the damage that made the log read-only, or nil.
func (l *FileLog) Damage() *errs.CorruptionError { return l.damage.Load() }

// Applied returns the position up to which this process has applied entries to its views.
func (l *FileLog) Applied() LSN { return l.state.appliedAt.Load() }

// AppliedMark returns the same position as Applied, together with the chain hash at this position.
func (l *FileLog) AppliedMark() Mark {
	l.state.mu.Lock()
	defer l.state.mu.Unlock()
	return l.state.applied
}

// Read returns the position up to which this process has read or written the log. For entries after this position, the
// log calls Machine.Also and Machine.Counts only after Read has returned.
func (l *FileLog) Read() LSN {
	l.state.mu.Lock()
	defer l.state.mu.Unlock()
	return l.state.w.At.LSN
}

// Durable returns the position up to which the log is durable. Any process may have made it durable.
func (l *FileLog) Durable() LSN {
	if l.private.Load() {
		return l.Applied()
	}
	return l.shared.Durable()
}

// Flushed returns the position below which all entries are in the document files. For these entries the files are
// authoritative, not the log.
func (l *FileLog) Flushed() LSN {
	if l.private.Load() {
		return l.report.Flushed
	}
	return l.shared.Flushed()
}

// Spilled returns the position below which all entries are in the index. For these entries the index is authoritative,
// not the log.
func (l *FileLog) Spilled() LSN {
	if l.private.Load() {
		return l.state.from.Load()
	}
	return l.shared.Spilled()
}

// Backlog returns the number of bytes of log that opening the store would have to replay.
func (l *FileLog) Backlog() int64 {
	if l.private.Load() {
		return int64(l.Applied() - l.state.from.Load())
	}
	spilled := l.Spilled()
	return int64(max(l.shared.Tail(), spilled) - spilled) // the tail is 0 while another process recovers the log
}

// Poisoned reports whether a sync of the log has failed and no sync has succeeded since then.
func (n Notes) Poisoned() bool {
	return n.l.shared.Mapped() && n.l.shared.Poison() == page.SyncFailed
}

// files has the segments of the log that this process has open.
type files struct {
	mu   sync.Mutex
	open map[uint64]vfs.File
	// Identities of the open segments whose file names were compared; an open file keeps its identity.
	known map[uint64]fileID
}

// fileID identifies the file behind an open handle by device and inode.
type fileID struct {
	file     vfs.File
	ino, dev uint64
}

// isKnown reports whether the file with the name of a segment is known to be the same file as the open handle f.
// info describes the file that has the name now.
func (l *FileLog) isKnown(number uint64, f vfs.File, info vfs.Info) bool {
	l.files.mu.Lock()
	defer l.files.mu.Unlock()
	return l.files.known[number] == fileID{f, info.Ino, info.Dev}
}

// know records the device and the inode of the file behind the open handle of a segment.
func (l *FileLog) know(number uint64, f vfs.File, info vfs.Info) {
	l.files.mu.Lock()
	defer l.files.mu.Unlock()
	if l.files.open[number] == f {
		l.files.known[number] = fileID{f, info.Ino, info.Dev}
	}
}

// hasOpen reports whether this process has a file open for the segment with the given number. A process writes into the
// file that it has open, even if another file now has the segment's name.
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

// source returns a segment of the log as a past.Source, from which a Walker reads frames.
func (l *FileLog) source(number uint64) (past.Source, error) { return l.segment(number) }

// forgetFiles closes the segments whose numbers are lower than limit, because their files are used again for other
// segments. If a reader still uses such a file, it finds no valid frames, because the checksums of another segment
// have another seed.
func (l *FileLog) forgetFiles(limit uint64) {
	l.files.mu.Lock()
	defer l.files.mu.Unlock()
	for _, n := range slices.Sorted(maps.Keys(l.files.open)) { // in order, so that a test run can be repeated
		if n < limit {
			l.files.open[n].Close()
			delete(l.files.open, n)
			delete(l.files.known, n)
		}
	}
}

// CloseReleased closes the segments that are completely below Spilled. Otherwise this process would keep files
// open that another process has reused or removed.
func (a Archive) CloseReleased() {
	l := a.l
	if spilled := l.Spilled(); spilled > 0 {
		l.forgetFiles(l.geo.Number(spilled - 1))
	}
}

func (l *FileLog) closeFiles() {
	l.forgetFiles(1 << 63)
}

// ioError returns err, an error of the system, with the operation and the path in front. For a full disk, a missing
// permission, or too many open files, the result also matches the sentinel error of package errs. ioError returns the
// error of a context unchanged.
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

// Past returns a reader of the whole history that is kept. It reads the segments and the archive as one log.
func (l *FileLog) Past() *past.Log {
	return &past.Log{FS: l.o.FS, Dir: l.o.walDir(), Geometry: l.geo}
}
