package fswatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/adopt"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal"
)

// Options are the waiting times of a Watcher. The zero value selects the defaults.
type Options struct {
	// Quiet is the time for which a file must have no event before it is checked; 0 means 300 ms.
	Quiet time.Duration
	// Gone is the time for which a file must be missing, without another file being deleted meanwhile, before it is
	// treated as deleted; 0 means a second.
	Gone time.Duration
	// Sweep is the pause between two scans over all files where folders cannot be watched; 0 means a minute.
	Sweep time.Duration

	source func(folders map[string]string) (source, error) // source of events, set by tests
}

// Watcher watches the document files of one store for changes by other programs.
type Watcher struct{ o Options }

// New returns a Watcher. The Watcher does nothing until Watch is called.
func New(o Options) *Watcher {
	if o.Quiet <= 0 {
		o.Quiet = 300 * time.Millisecond
	}
	if o.Gone <= 0 {
		o.Gone = time.Second
	}
	if o.Sweep <= 0 {
		o.Sweep = time.Minute
	}
	if o.source == nil {
		o.source = notify
	}
	return &Watcher{o}
}

// files has the methods of *adopt.Files that a Watcher calls.
type files interface {
	look
	Lead(ctx context.Context) (release func(), err error)
	Folders() []string
	Path(folder string) string
	Report(note string, err error)
	Polls(cause wal.PollCause)
}

// leadAgain is the pause before this process tries again to become the process that watches, after an error prevented
// it. It does not apply if the reason is that another process watches.
const leadAgain = 10 * time.Second

// Watch watches the document files until ctx ends or the store is closed.
func (w *Watcher) Watch(ctx context.Context, f *adopt.Files) { w.run(ctx, f) }

func (w *Watcher) run(ctx context.Context, f files) {
	var release func()
	for release == nil {
		var err error
		if release, err = f.Lead(ctx); err != nil {
			if ctx.Err() != nil || errors.Is(err, errs.ErrReadOnly) || errors.Is(err, errs.ErrClosed) ||
				errors.Is(err, errs.ErrReplaced) {
				return
			}
			f.Report("not yet", err)
			if !sleep(ctx, leadAgain) {
				return
			}
		}
	}
	defer release()
	said := ""
	for ctx.Err() == nil {
		folders, names := map[string]string{}, f.Folders()
		for _, name := range names {
			folders[f.Path(name)] = name
		}
		if len(names) < len(kind.Kinds) { // the first document of a kind creates its folder
			folders[f.Path("")] = ""
		}
		src, err := w.o.source(folders)
		if err == nil && len(f.Folders()) > len(names) { // created before the source could report it
			src.Close()
			continue
		}
		if err != nil {
			if err.Error() != said { // once for each reason
				said = err.Error()
				f.Report(fmt.Sprintf("by checking all files every %s", w.o.Sweep), err)
			}
			f.Polls(causeOf(err))
			src = none{}
		} else {
			said = ""
			f.Polls(wal.NotPolling)
			f.Report("by the system's notifications", nil)
		}
		s := newSession(&w.o, f, src, names)
		s.run(ctx)
		src.Close()
		if s.replaced.Load() {
			return
		}
		sleep(ctx, w.o.Quiet)
	}
}

// limitError reports that a limit of the system prevents notifications. With inotify the system reports such a limit as
// EMFILE or ENOSPC, although no disk is full.
type limitError struct {
	what  string // action that failed, such as watching a folder
	cause wal.PollCause
}

func (e *limitError) Error() string { return e.what + ": " + e.cause.String() }
func (e *limitError) Unwrap() error { return errs.ErrLimit }

// causeOf returns the reason for which no source of notifications could be opened, in the form that other processes
// read.
func causeOf(err error) wal.PollCause {
	if limit := (*limitError)(nil); errors.As(err, &limit) {
		return limit.cause
	}
	return wal.NoNotices
}

// sleep waits until d has passed or ctx ends. It returns false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool { return vfs.Sleep(ctx, d) == nil }
