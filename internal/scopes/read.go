package scopes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/working"
)

// read carries out an operation that changes nothing. If the operation r would change the scope, the bool result is
// false and the Result is not valid.
func (s *scope) read(ctx context.Context, r *working.Request) (working.Result, bool, error) {
	for {
		s.mu.Lock()
		err := s.sync(ctx)
		if err == nil && s.edited && s.ws.engine.Writable() == nil {
			s.mu.Unlock()
			if err := s.adopt(ctx); err != nil {
				return working.Result{}, false, err
			}
			continue
		}
		if err != nil {
			s.mu.Unlock()
			return working.Result{}, false, err
		}
		defer s.mu.Unlock()
		now, _ := s.moment(false)
		d, res, err := s.state.Judge(now, r)
		if get, ok := r.Op.(working.OpGet); ok && !get.Peek && s.ahead != nil {
			s.ahead.Use(get.Names)
		}
		return res, d.Empty(), err
	}
}

// sync brings the scope's state in memory up to date: it applies all durable log entries of the scope. The caller holds
// mu.
func (s *scope) sync(ctx context.Context) error {
	ws := s.ws
	var last error
	for range engine.FindTries {
		if err := ws.engine.CatchUp(ctx); err != nil {
			return err
		}
		breaks := ws.engine.State().Breaks()
		if s.state != nil && s.breaks == breaks && s.newest.Load() <= s.lsn {
			return nil
		}
		var err error
		if s.state != nil && s.breaks == breaks {
			err = s.follow(ctx)
		} else {
			err = s.load(ctx, breaks)
		}
		switch {
		case err == nil:
			continue // check again: an entry may have arrived meanwhile
		case errors.Is(err, errs.ErrTruncated), errors.Is(err, engine.ErrMoved), errors.Is(err, engine.ErrMismatch):
			s.state = nil
			_ = ws.engine.Refresh()
		default:
			s.state = nil
			return err
		}
		last = err
	}
	if errors.Is(last, engine.ErrMismatch) {
		return &errs.CorruptionError{Path: s.path(), Offset: -1, Err: last}
	}
	return fmt.Errorf("reading working memory of %s: gave up, because another process keeps changing it: %w", s.key,
		last)
}

func (s *scope) path() string {
	return s.ws.engine.Kinds().Scopes.Name() + "/" + kind.Scopes.FileName(s.key)
}

// follow applies the entries of the scope that this process has read from the log since s.lsn. If the entries do not
// continue the state, the error wraps engine.ErrMismatch, and the caller must read the file again. The caller holds mu.
func (s *scope) follow(ctx context.Context) error {
	list, err := s.chain(ctx, s.newest.Load(), s.lsn)
	if err != nil {
		return err
	}
	return s.play(ctx, list)
}

// loggedWork is one entry of a scope in the log.
type loggedWork struct {
	lsn, previous wal.LSN
	time          time.Time
	bytes, size   int64             // bytes of the entry in the log, and bytes of the decompressed document
	over          bool              // the document is compressed more than 64-fold, see package flush
	whole         bool              // the entry depends on no earlier entry
	entry         *working.LogEntry // decoded entry; nil: too large to keep, so it is read again; see chainHeld
}

// chainHeld is the maximum number of bytes of decompressed documents that chain keeps in memory. A
// forged log can have entries of a few KiB that inflate to many MiB.
const chainHeld = 16 << 20

// chain returns the scope's log entries that follow the position base, up to and including the entry at position
// from, in the order of the log. It reads the entries backwards, and stops at an entry that does not depend on
// earlier ones.
func (s *scope) chain(ctx context.Context, from, base wal.LSN) (list []loggedWork, err error) {
	held := int64(0)
	for at := from; at != base; {
		if at < base || at < s.ws.engine.State().From() {
			return nil, fmt.Errorf("%w: the file has the state of position %d, but the entries of the scope in the "+
				"log continue from position %d", engine.ErrMismatch, base, at)
		}
		e, err := s.ws.workEntry(ctx, s.key, at)
		if err != nil {
			return nil, err
		}
		if held += e.size; held > chainHeld {
			e.entry = nil
		}
		list = append(list, e)
		if e.whole {
			break
		}
		at = e.previous
	}
	slices.Reverse(list)
	return list, nil
}

// workEntry reads the log entry of working memory at position pos. The error is engine.ErrMoved if the entry there
// belongs to another key.
func (ws *Scopes) workEntry(ctx context.Context, key string, pos wal.LSN) (loggedWork, error) {
	e, err := ws.engine.Log().ReadAt(ctx, pos)
	if err != nil {
		return loggedWork{}, err
	}
	if len(e.Key) == 0 || e.Key[0] != record.Working || e.Key[1:] != key {
		return loggedWork{}, engine.ErrMoved
	}
	view, err := state.Read(&e)
	if err != nil {
		return loggedWork{}, fmt.Errorf("entry %d: %w", pos, err)
	}
	body, err := ws.engine.Codec().Doc(&view, scopeLimit)
	if err != nil {
		return loggedWork{}, fmt.Errorf("entry %d: %w", pos, err)
	}
	entry, err := working.DecodeLogEntry(view.Line, body)
	if err != nil {
		return loggedWork{}, &errs.CorruptionError{Path: "wal", LSN: pos, Offset: -1, Err: err}
	}
	entry.Fresh = entry.Fresh || e.Delete // a deletion leaves nothing of the earlier state
	return loggedWork{
		lsn: pos, previous: view.Previous, time: e.Time,
		bytes: int64(len(e.Value)), size: int64(view.Size()),
		entry: entry,
		over:  view.Overpacked(),
		whole: entry.Fresh || entry.State != nil,
	}, nil
}

// play applies log entries to the scope's state in memory. The caller holds mu.
func (s *scope) play(ctx context.Context, list []loggedWork) error {
	var grown size
	for _, e := range list {
		if e.entry == nil {
			again, err := s.ws.workEntry(ctx, s.key, e.lsn)
			if err != nil {
				return err
			}
			e = again
		}
		s.state = e.entry.Play(s.state)
		if err := grown.check(s.state, e.size, e.lsn); err != nil {
			return err
		}
		s.state.Sweep(s.state.Tick(), sweepEach)
		s.lsn, s.time, s.edited = e.lsn, e.time, false
		switch {
		case e.whole:
			s.whole = wholeAt{at: e.lsn}
		case s.whole.file && s.whole.at == 0:
			s.whole.at = e.lsn
		}
		s.lacks.take(&e)
		s.size.Add(max(e.size, e.bytes))
	}
	return nil
}

// size checks that a scope does not become too large while log entries are applied.
type size struct{ since int64 }

// stateMost is the maximum size in bytes of a scope's state in memory. A store refuses changes from a smaller size on
// (scopeMost). But a checkpoint copies everything in the scope, so one change can exceed scopeMost by far.
const stateMost = places.StoredMost

// sizeEvery is the number of bytes of log entries after which the size of the scope's state is checked.
const sizeEvery = 4 << 20

// check returns a *errs.CorruptionError for the entry at position pos if the scope's state is larger than a store
// allows. added is the size of that entry in bytes after decompression. check measures the state only once per
// sizeEvery bytes of entries.
func (b *size) check(s *working.State, added int64, pos wal.LSN) error {
	if b.since += added; b.since < sizeEvery {
		return nil
	}
	b.since = 0
	if n := s.Bytes(); n > stateMost {
		return &errs.CorruptionError{Path: "wal", LSN: pos, Offset: -1,
			Err: fmt.Errorf("the working memory has %d bytes, but the limit is %d: %w", n, int64(stateMost),
				errs.ErrTooLarge)}
	}
	return nil
}

// load reads the scope's file and applies the later log entries to its state. It looks for entries in the overlay
// before it reads the file. So if an entry leaves the overlay in between, the file includes the entry. breaks is the
// result of State.Breaks before the call: how often following the log was interrupted. The caller holds mu.
func (s *scope) load(ctx context.Context, breaks uint64) error {
	ws := s.ws
	s.state, s.ahead = nil, nil
	told := s.newest.Load()
	newest, logged := ws.engine.State().Work(s.key), true
	if !state.IsWork(newest) {
		newest, logged = 0, false
	}
	f, err := s.readFile()
	var damage error
	if errors.Is(err, errs.ErrCorrupt) {
		damage, err = err, nil // the log may not need the file
	}
	if err != nil {
		return err
	}
	base, found := f.LSN, f.State != nil
	if !found {
		f.State = working.NewState()
	} else if f.Store != uuid.UUID(ws.engine.Log().UUID()).String() {
		base = 0 // a file of another log: the first entry of this log depends on it
	}
	if base >= ws.engine.Log().Applied() {
		if f.Intact {
			return fmt.Errorf("%w: the file is newer than the log that was read", engine.ErrMismatch)
		}
		base = 0 // the position was edited by hand
	}
	var list []loggedWork
	if logged && (base < newest || damage != nil) {
		list, err = s.chain(ctx, newest, base)
	}
	rests := len(list) == 0 || !list[0].whole // whether the entries depend on the file
	if damage != nil && (rests || err != nil) {
		return damage
	}
	if err != nil {
		return err
	}
	if found && f.Intact && !logged && told > base {
		if done, err := s.newerStays(ctx, told, breaks); done || err != nil {
			return err
		}
	}
	if !s.whole.file || s.breaks != breaks || s.whole.at == 0 && base > s.lsn { // the copy may lack what the file includes
		s.whole = wholeAt{}
		if base != 0 && f.Intact {
			s.whole.at = f.Whole
		}
	}
	s.state, s.lsn, s.time, s.breaks, s.lacks = f.State, base, f.Time, breaks, lacks{}
	s.edited = found && !f.Intact
	s.size.Store(s.file.size)
	if !logged && told > base { // the scope was dropped, or the file was replaced by an older one
		s.lsn, s.edited = told, found
	}
	if err := s.play(ctx, list); err != nil {
		return err
	}
	// Other processes have applied these entries to the file before the edit. Adopt the edited
	// state, so that they get it too.
	s.edited = s.edited || rests && found && !f.Intact
	return nil
}

// newerStays is called after another program, such as git or a copy tool, replaced the scope's file by an older
// version of the file. It restores the newer state, which is as of position pos, from the log and the archive. The
// state is written to the log like an edit by hand, so that all processes get it, and the flush moves the older
// file to quarantine.
//
// restored is false if the store is read-only, if the scope was dropped, or if the log and the archive no longer
// have all entries. In these cases the store uses the older file. The caller holds mu.
func (s *scope) newerStays(ctx context.Context, pos wal.LSN, breaks uint64) (restored bool, err error) {
	if s.ws.engine.Env().ReadOnly {
		return false, nil
	}
	is, _, missing, err := s.past(ctx)
	if err != nil {
		return false, err
	}
	e := env.Event{Kind: env.EventEdit, ID: s.key, Path: s.path(),
		Err: errors.New("the file was replaced by an older version")}
	switch {
	case is.n > 0 && is.lsn == pos && is.state.Empty():
		return false, nil
	case missing || is.lsn != pos:
		e.Note = "log and archive no longer have the newer state, using the older file"
		s.ws.engine.Env().Event(e)
		return false, nil
	}
	s.ws.engine.Env().Event(e)
	s.state, s.lsn, s.time, s.breaks, s.lacks, s.whole = is.state, pos, is.time, breaks, lacks{}, wholeAt{}
	s.edited, s.file = true, believed{lsn: pos}
	return true, nil
}

// readFile reads the file of the scope. It returns a File without a State if there is no file.
func (s *scope) readFile() (*working.File, error) {
	name := kind.Scopes.FileName(s.key)
	doc, info, err := s.ws.engine.Kinds().Scopes.Read(name, scopeLimit)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.file = believed{}
		return &working.File{}, nil
	case errors.Is(err, errs.ErrCorrupt), err != nil && engine.NotOurs(err):
		return &working.File{}, &errs.CorruptionError{Path: s.path(), Offset: -1, Err: err}
	case err != nil:
		return nil, s.ws.engine.Env().IOError("reading", s.ws.engine.Kinds().Scopes.Path(name), err)
	}
	f, err := working.DecodeFile(doc)
	if err == nil && f.Scope != s.scope {
		err = fmt.Errorf("the file contains the document of another scope, %s", f.Scope.Key())
	}
	if err != nil {
		return &working.File{}, &errs.CorruptionError{Path: s.path(), Offset: -1, Err: err}
	}
	s.grown = 0
	s.file = believed{size: info.Size, mtime: info.Mtime} // from here on the edited file is the known one
	if f.Intact && f.Store == uuid.UUID(s.ws.engine.Log().UUID()).String() {
		s.file.lsn = f.LSN
	}
	return f, nil
}
