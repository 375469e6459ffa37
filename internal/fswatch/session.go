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

// look is the part of *adopt.Files that a session calls.
type look interface {
	Look(ctx context.Context, folder string, names []string) (absent []string, err error)
	Gone(ctx context.Context, folder string, absent []string) (ids []string, err error)
	Settle(ctx context.Context, folder string, ids []string) error
	Restore(ctx context.Context, folder string) error
	Suspects(ctx context.Context, folder string) iter.Seq2[string, error]
	Missing(ctx context.Context, folder string, dirs []string) (names []string, err error)
}

// session is a watch with one source, until the source ends.
type session struct {
	o       *Options
	f       files
	src     source
	folders map[string]*folder
	names   []string // names of the folders, in order

	sweeping chan found  // results of the running sweep; nil while none runs
	again    bool        // an event was lost while the sweep ran: sweep again
	due      time.Time   // time at which a session without notifications ends
	stepAt   time.Time   // time at which pending files are checked next; zero if there are none
	replaced atomic.Bool // the store's folder was replaced: its files are no longer this store's
}

// folder has the pending files of one folder.
type folder struct {
	pending map[string]pending
	absent  map[string]bool // names of missing files
	gone    []string        // ids of the documents of missing files, at the last check
	looked  time.Time       // time of that check
	removed bool            // the folder itself is missing
	entered []string        // folders in it that were not watched until a moment ago
}

// pending has the times of the first and the last event of a changed file.
type pending struct{ first, last time.Time }

// found is a file that a sweep has found.
type found struct{ folder, name string }

// Bounds on a session.
const (
	// lookMost is the number of files that are checked before events are processed again: files that are checked
	// together cost one commit and one flush.
	lookMost = 1024
	// patience times Quiet is the maximum time for which the session waits until a file has had no events.
	patience = 10
)

// newSession returns a session for the folders with these names, whose events come from src.
func newSession(o *Options, f files, src source, names []string) *session {
	s := &session{o: o, f: f, src: src, folders: map[string]*folder{}, names: names}
	for _, name := range s.names {
		s.folders[name] = &folder{pending: map[string]pending{}, absent: map[string]bool{}}
	}
	return s
}

// run begins with a sweep and continues until ctx or the source ends. Without notifications it returns when the next
// sweep is due, so that the caller can try again to get notifications.
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

// happened processes an event; it returns true if the source has ended.
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
		s.note(e.folder, e.name, time.Now())
	case e.all:
		s.f.Report("by checking all files: the system's notification queue was full", errs.ErrLimit)
		s.sweep(ctx)
	default:
		s.note(e.folder, e.name, time.Now())
	}
	return false
}

func (s *session) note(folder, name string, now time.Time) {
	fo := s.folders[folder]
	if fo == nil {
		return
	}
	p, ok := fo.pending[name]
	if !ok {
		p.first = now
	}
	p.last = now
	fo.pending[name] = p
	if s.stepAt.IsZero() {
		s.stepAt = now.Add(s.o.Quiet / 3) // all files that are quiet by then are checked together
	}
}

// next returns the time of the next work; ok is false if there is none.
func (s *session) next() (at time.Time, ok bool) {
	sooner := func(t time.Time) {
		if !ok || t.Before(at) {
			at, ok = t, true
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
	return at, ok
}

// step checks files that are quiet and files that are gone; it returns true if the session is over.
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

// quiet checks files that had no event for a while; more reports that there are others.
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
	absent, err := s.f.Look(ctx, name, list)
	if err != nil && ctx.Err() == nil {
		s.failed(name, err)
		for _, file := range list { // again, later
			s.note(name, file, now)
		}
		return false
	}
	if len(absent) > 0 && len(fo.absent) == 0 {
		fo.looked = now
	}
	for _, file := range absent {
		fo.absent[file] = true
	}
	return more
}

// missing treats files as deleted, once no more files have disappeared since the last check.
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

// restoreFolders calls Restore for a folder that is missing: the store decides about its files.
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
