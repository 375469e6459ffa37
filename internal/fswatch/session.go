package fswatch

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync/atomic"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/kind"
)

// look has the methods of *adopt.Files that a watch session calls.
type look interface {
	LookNow(ctx context.Context, folder string, names []string) (absent, emptied []string, err error)
	Gone(ctx context.Context, folder string, absent []string) (ids []string, err error)
	Settle(ctx context.Context, folder string, ids []string) error
	Restore(ctx context.Context, folder string) error
	Suspects(ctx context.Context, folder string) iter.Seq2[string, error]
	Missing(ctx context.Context, folder string, dirs []string) (names []string, err error)
}

// session watches files with one source of events, until the source ends.
type session struct {
	o       *Options
	f       files
	src     source
	folders map[string]*folder
	names   []string // names of the folders, in order

	sweeping chan found  // receives the files that the running scan finds; nil while no scan runs
	again    bool        // events were missed during the scan, so another scan is needed
	due      time.Time   // time at which a session without notifications ends
	stepAt   time.Time   // time at which pending files are checked; zero: no file is pending
	replaced atomic.Bool // the store's folder was replaced: its files are no longer this store's
}

// folder has the files of one folder that are waiting to be checked, and the files that were missing at the last check.
type folder struct {
	pending map[string]pending
	absent  map[string]bool // names that were missing at the last check
	gone    []string        // ids of these names at the last check
	looked  time.Time       // time of the last check
	removed bool            // the folder itself no longer exists
	entered []string        // folders in it whose watch has just begun
}

// pending has the times of the first and the last event of a file that is waiting to be checked.
type pending struct{ first, last time.Time }

// found is a file that a scan of all files has found, and that has to be checked.
type found struct{ folder, name string }

// Limits of a watch session.
const (
	// lookMost is the maximum number of files that are checked before events are processed again. Files that are
	// checked together need only one commit and one round of writing files.
	lookMost = 1024
	// patience is the time after which a file is checked even if it continues to have events, as a multiple of
	// Options.Quiet.
	patience = 10
)

// newSession returns a session for the folders with these names. Its events come from src.
func newSession(o *Options, f files, src source, names []string) *session {
	s := &session{o: o, f: f, src: src, folders: map[string]*folder{}, names: names}
	for _, name := range s.names {
		s.folders[name] = &folder{pending: map[string]pending{}, absent: map[string]bool{}}
	}
	return s
}

// run begins with a scan of all files and continues until ctx or the source of events ends. If the source sends no
// notifications, run returns when the next scan is due, so that the caller can try again to get notifications.
func (s *session) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer s.end(cancel)
	s.sweep(ctx)
	s.due = time.Now().Add(s.o.Sweep)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil && !s.replaced.Load() {
		var wake <-chan time.Time
		if at, ok := s.next(); ok {
			timer.Reset(max(time.Until(at), time.Millisecond))
			wake = timer.C
		}
		select {
		case <-ctx.Done():
			return
		case e, ok := <-s.src.Events():
			if !ok || s.happened(ctx, e) {
				return
			}
		case x, ok := <-s.sweeping:
			if ok {
				s.note(x.folder, x.name, time.Now())
				continue
			}
			if s.sweeping = nil; s.again {
				s.sweep(ctx)
			}
		case <-wake:
			if s.step(ctx, time.Now()) {
				return
			}
		}
	}
}

func (s *session) end(cancel func()) {
	cancel()
	if s.sweeping != nil {
		for range s.sweeping { // it ends with ctx
		}
	}
}

// happened processes an event of a file or folder. It returns true if the source of events has ended.
func (s *session) happened(ctx context.Context, e event) (ended bool) {
	switch {
	case e.ended:
		if fo := s.folders[e.folder]; fo != nil {
			fo.removed = true
		}
		// The sweep at the beginning of the next session finds what happens meanwhile.
		s.restoreFolders(ctx)
		return true
	case e.moved:
		s.sweep(ctx)
	case e.entered:
		if fo := s.folders[e.folder]; fo != nil {
			fo.entered = append(fo.entered, e.name)
		}
		s.note(e.folder, e.name, e.time())
	case e.all:
		s.f.Report("by checking all files: the system's notification queue was full", errs.ErrLimit)
		s.sweep(ctx)
	default:
		s.note(e.folder, e.name, e.time())
	}
	return false
}

// note records that something happened to a file at time t, which may be some time ago.
func (s *session) note(folder, name string, t time.Time) {
	fo := s.folders[folder]
	if fo == nil {
		return
	}
	p, ok := fo.pending[name]
	if !ok {
		p.first = t
	}
	p.last = t
	fo.pending[name] = p
	if s.stepAt.IsZero() {
		s.stepAt = time.Now().Add(s.o.Quiet / 3) // all files that are quiet by then are checked together
	}
}

// next returns the time at which the session must act next. ok is false if nothing is due.
func (s *session) next() (deadline time.Time, ok bool) {
	sooner := func(t time.Time) {
		if !ok || t.Before(deadline) {
			deadline, ok = t, true
		}
	}
	if !s.stepAt.IsZero() {
		sooner(s.stepAt)
	}
	for _, fo := range s.folders {
		if len(fo.absent) > 0 {
			sooner(fo.looked.Add(s.o.Gone))
		}
	}
	if s.src.Events() == nil {
		sooner(s.due)
	}
	return deadline, ok
}

// step checks the files that had no event for a while and the files that are missing. It returns true if the session
// must end.
func (s *session) step(ctx context.Context, now time.Time) (over bool) {
	pending, more := false, false
	for _, name := range s.names {
		fo := s.folders[name]
		more = s.quiet(ctx, name, fo, now) || more
		if len(fo.absent) > 0 && now.Sub(fo.looked) >= s.o.Gone {
			s.missing(ctx, name, fo)
		}
		pending = pending || len(fo.pending) > 0
	}
	switch s.stepAt = (time.Time{}); {
	case more:
		s.stepAt = time.Now()
	case pending:
		s.stepAt = time.Now().Add(s.o.Quiet / 3)
	}
	if s.src.Events() != nil || now.Before(s.due) {
		return false
	}
	for _, fo := range s.folders {
		pending = pending || len(fo.absent) > 0
	}
	if pending || s.sweeping != nil {
		s.due = now.Add(s.o.Quiet)
		return false
	}
	return true
}

// quiet checks those files of a folder that had no event for a while. more reports whether more such files remain.
func (s *session) quiet(ctx context.Context, name string, fo *folder, now time.Time) (more bool) {
	if len(fo.entered) > 0 { // a file that left them before they were watched has no event
		missing, err := s.f.Missing(ctx, name, fo.entered)
		if err != nil {
			s.failed(name, err)
		}
		fo.entered = nil
		for _, file := range missing {
			s.note(name, file, now)
		}
	}
	var list []string
	for file, p := range fo.pending {
		if now.Sub(p.last) < s.o.Quiet && now.Sub(p.first) < patience*s.o.Quiet {
			continue
		}
		if list = append(list, file); len(list) == lookMost {
			more = true
			break
		}
	}
	if len(list) == 0 {
		return false
	}
	slices.Sort(list)
	for _, file := range list {
		delete(fo.pending, file)
	}
	absent, emptied, err := s.f.LookNow(ctx, name, list)
	if err != nil && ctx.Err() == nil {
		s.failed(name, err)
		for _, file := range list { // again, later
			s.note(name, file, now)
		}
		return false
	}
	for _, file := range emptied { // an editor may be saving it
		s.note(name, file, time.Now())
	}
	if len(absent) > 0 && len(fo.absent) == 0 {
		fo.looked = now
	}
	for _, file := range absent {
		fo.absent[file] = true
	}
	return more
}

// missing lets the store decide about the missing files of a folder, if no more files have disappeared since the last
// check.
func (s *session) missing(ctx context.Context, name string, fo *folder) {
	absent := make([]string, 0, len(fo.absent))
	for file := range fo.absent {
		absent = append(absent, file)
	}
	slices.Sort(absent)
	gone, err := s.f.Gone(ctx, name, absent)
	fo.looked = time.Now()
	switch {
	case err != nil:
		s.failed(name, err)
		return
	case len(gone) == 0:
	case !slices.Equal(gone, fo.gone):
		fo.gone = gone // perhaps the user is still deleting
		return
	default:
		if err := s.f.Settle(ctx, name, gone); err != nil {
			s.failed(name, err)
			return
		}
		if k := kind.Filing(name); k != nil && k.Tree() {
			s.sweep(ctx) // a file was refused because of a document whose file is gone now: a/b because of a
		}
	}
	clear(fo.absent)
	fo.gone = nil
}

// restoreFolders handles the document folders that were removed. For each of them it waits for Options.Gone, lets the
// store decide about the missing files, and then lets it create the folder again if the folder should exist.
func (s *session) restoreFolders(ctx context.Context) {
	for _, name := range s.names {
		fo := s.folders[name]
		if !fo.removed || !sleep(ctx, s.o.Gone) {
			continue
		}
		for file, err := range s.f.Suspects(ctx, name) {
			if err != nil {
				s.failed(name, err)
				break
			}
			if file != "" {
				fo.absent[file] = true
			}
		}
		s.missing(ctx, name, fo)
		s.missing(ctx, name, fo)
		if err := s.f.Restore(ctx, name); err != nil {
			s.failed(name, err)
		}
	}
}

func (s *session) failed(folder string, err error) {
	if errors.Is(err, errs.ErrReplaced) { // the log reports it with an event
		s.replaced.Store(true)
		return
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, errs.ErrClosed) {
		return
	}
	s.f.Report("looking at "+folder, err)
}
