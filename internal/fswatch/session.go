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

// look is what a session asks of *adopt.Files.
type look interface {
	Look(ctx context.Context, folder string, names []string) (absent []string, err error)
	Emptied(folder, name string) bool
	Gone(ctx context.Context, folder string, absent []string) (ids []string, err error)
	Settle(ctx context.Context, folder string, ids []string) error
	Restore(ctx context.Context, folder string) error
	Suspects(ctx context.Context, folder string) iter.Seq2[string, error]
	Missing(ctx context.Context, folder string, dirs []string) (names []string, err error)
}

// session is a watch by one source, until that ends.
type session struct {
	o       *Options
	f       files
	src     source
	folders map[string]*folder
	names   []string // of the folders, in order

	sweeping chan found  // of the sweep that runs; nil when none does
	again    bool        // something was missed while it ran
	due      time.Time   // when the session ends that has no notifications
	stepAt   time.Time   // when pending files are looked through; zero while there are none
	replaced atomic.Bool // the store's folder was replaced: its files are no longer this store's
}

// folder is what is pending in one folder.
type folder struct {
	pending map[string]pending
	absent  map[string]bool // names that were not there
	gone    []string        // the ids of those at the last look
	looked  time.Time       // when that was
	removed bool            // the folder itself is gone
	entered []string        // folders in it that are watched since a moment ago
}

// pending is when the first and the last event of a file came.
type pending struct{ first, last time.Time }

// found is what a sweep has found.
type found struct{ folder, name string }

// Bounds on a session.
const (
	// lookMost is how many files are looked at before events are taken again: many at
	// once cost a commit and a round for all of them.
	lookMost = 1024
	// patience is how many times Quiet a file is waited for that never is.
	patience = 10
)

// newSession returns a session about the folders of these names, of which src tells.
func newSession(o *Options, f files, src source, names []string) *session {
	s := &session{o: o, f: f, src: src, folders: map[string]*folder{}, names: names}
	for _, name := range s.names {
		s.folders[name] = &folder{pending: map[string]pending{}, absent: map[string]bool{}}
	}
	return s
}

// run begins with a sweep and goes on until ctx or the source ends; without
// notifications until the next sweep is due, then the caller tries for them again.
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

// happened takes an event; true when the source has ended.
func (s *session) happened(ctx context.Context, e event) (ended bool) {
	switch {
	case e.ended:
		if fo := s.folders[e.folder]; fo != nil {
			fo.removed = true
		}
		// What happened meanwhile is found by the sweep with which the next session begins.
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
		s.f.Report("by looking at everything: the system's queue of notifications was full", errs.ErrLimit)
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
		s.stepAt = now.Add(s.o.Quiet / 3) // all that is quiet by then is looked at together
	}
}

// next is when there is something to do.
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

// step looks at what is quiet, and at what is gone; true when the session is over.
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

// quiet looks at files to which nothing has happened for a while; more says that there
// are others.
func (s *session) quiet(ctx context.Context, name string, fo *folder, now time.Time) (more bool) {
	if len(fo.entered) > 0 { // what has left them before they were watched has no event
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
		if s.f.Emptied(name, file) { // Look would wait for it, and all others with it
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

// missing settles what is gone, once no more of it has gone since the last look.
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
		fo.gone = gone // perhaps somebody is still at it
		return
	default:
		if err := s.f.Settle(ctx, name, gone); err != nil {
			s.failed(name, err)
			return
		}
		if k := kind.Filing(name); k != nil && k.Tree() {
			s.sweep(ctx) // a file was refused where a document was whose file is gone: a/b while a was there
		}
	}
	clear(fo.absent)
	fo.gone = nil
}

// restoreFolders has the store judge what was in a folder that is gone.
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
	if errors.Is(err, errs.ErrReplaced) { // the log has an event for it
		s.replaced.Store(true)
		return
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, errs.ErrClosed) {
		return
	}
	s.f.Report("looking at "+folder, err)
}
