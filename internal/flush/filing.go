package flush

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal"
)

// filing writes the newest versions of documents to their files, for one flush. It puts the next files in place while
// earlier files are being made durable. The index is written after the files. The caller must call end, which waits
// until all files are durable.
type filing struct {
	fl         *Flusher
	flushed    wal.LSN
	distrusted bool     // the existing files may have any contents
	repeats    bool     // the flush before this one failed
	rescues    *rescued // set if a log that was removed is rescued; else nil
	// error of a rescue in which documents that are compressed more than 64-fold are too large to be written as files
	inflates atomic.Pointer[errs.InflatedError]
	behind   bool // document files may have newer versions than those that this process knows
	readers  []*wal.Reader
	syncing  *syncing
	begun    wal.LSN // log position: the files of changes at or after it are not written yet
	worked   worked  // scopes of working memory that have changes in this round
	held     bool    // hold was called: worked has only the scopes that this round must write
	ctx      context.Context
	err      error // error of syncing an earlier round of files
}

// syncing is a round of files that were put in place and are being made durable.
type syncing struct {
	placed *docfile.Placed
	done   chan error
}

func (fl *Flusher) filing(ctx context.Context, flushed wal.LSN, distrusted bool) *filing {
	f := &filing{fl: fl, ctx: ctx, begun: 1, flushed: flushed, distrusted: distrusted, repeats: fl.failed.Load() > 0}
	for range fl.workers {
		f.readers = append(f.readers, fl.engine.Log().Reader())
	}
	return f
}

// roundFiles is the maximum number of files in a round. It is small enough that the disk makes one round durable while
// the files of the next round are written.
const roundFiles = 4096

// roundOf returns the number of changes at the beginning of list that make up one round of files: at most limit, with
// entries that begin within System.RoundBytes bytes of log. It returns at least 1 unless list is empty.
func (fl *Flusher) roundOf(list []index.At, limit int) int {
	n := min(1, len(list))
	for n < min(len(list), limit) && list[n].Pos-list[0].Pos < uint64(fl.engine.Env().System.RoundBytes) {
		n++
	}
	return n
}

// put writes the newest versions of documents to their files, in rounds. When put returns, all rounds except the last
// are durable. If held is not nil, the list has all changes that are not in files yet, and put reports its progress to
// other processes.
func (f *filing) put(ctx context.Context, held *wal.Held, list []index.At) error {
	tells := held != nil && slices.IsSortedFunc(list, func(a, b index.At) int { return cmp.Compare(a.Pos, b.Pos) })
	for first := true; len(list) > 0; first = false {
		n := f.fl.roundOf(list, roundFiles)
		for _, at := range list[:n] {
			f.begun = max(f.begun, at.Pos+1)
		}
		if err := f.round(ctx, list[:n]); err != nil {
			return fmt.Errorf("putting files in place: %w", err)
		}
		if tells && !first {
			// a process that waits for the lock sees the progress
			if err := f.fl.engine.Log().Pace().Filed(held, list[0].Pos, 0, 0); err != nil {
				return err
			}
		}
		list = list[n:]
	}
	return nil
}

func (f *filing) round(ctx context.Context, list []index.At) error {
	if f.distrusted {
		f.fl.files.Distrust()
	}
	if f.repeats {
		f.fl.files.Repeat()
	}
	src := f.frames(ctx, list)
	placed, result, err := f.fl.files.Put(ctx, src)
	src.done()
	f.fl.Edited(ctx, result.Edits)
	f.fl.aside = append(f.fl.aside, result.Edits...)
	if err != nil {
		return err
	}
	if err := f.wait(); err != nil {
		return placed.End(err)
	}
	f.sync(placed)
	if len(result.Blocked) == 0 {
		return nil
	}
	if err := f.wait(); err != nil {
		return err
	}
	return f.fl.unblock(ctx, src, result.Blocked)
}

// sync starts to make the files of a round durable.
func (f *filing) sync(placed *docfile.Placed) {
	f.syncing = &syncing{placed: placed, done: make(chan error, 1)}
	if f.fl.engine.Env().System.Inline {
		f.syncing.done <- placed.Sync()
		return
	}
	go func(s *syncing) { s.done <- s.placed.Sync() }(f.syncing)
}

// wait waits until all files that were put in place are durable. If hold was called, wait then also writes the files
// of the scopes of working memory that this round must write.
func (f *filing) wait() error {
	if s := f.syncing; s != nil {
		f.syncing = nil
		f.err = errors.Join(f.err, s.placed.End(<-s.done))
	}
	if f.held && f.err == nil {
		if keys := f.worked.take(); len(keys) > 0 {
			var spares func(key string, err error) bool
			if f.rescues != nil {
				spares = f.rescues.sparesScope
			}
			f.err = f.fl.host.PutScopes(f.ctx, keys, f.distrusted, spares)
		}
	}
	return f.err
}

// end waits until all files are durable. err is the error of the flush so far. If err is nil, end returns the error of
// the waiting. If err is not nil, end returns err; it adds the error of the waiting only if that is ErrSyncFailed and
// err is not.
func (f *filing) end(err error) error {
	serr := f.wait()
	switch {
	case err == nil:
		return serr
	case errors.Is(serr, errs.ErrSyncFailed) && !errors.Is(err, errs.ErrSyncFailed):
		// of a round before the one that was canceled
		return errors.Join(err, serr)
	}
	return err
}

// frames is the docfile.Source of a round. It reads each document from the document's frame in the log when a worker
// needs it.
type frames struct {
	f    *filing
	ctx  context.Context
	list []index.At
	lent []func() // for each worker, the function that releases the document of its last change
}

func (f *filing) frames(ctx context.Context, list []index.At) *frames {
	return &frames{f: f, ctx: ctx, list: list, lent: make([]func(), f.fl.workers)}
}

// done releases the documents that the workers have read last.
func (s *frames) done() {
	for worker := range s.lent {
		s.giveBack(worker)
	}
}

func (s *frames) giveBack(worker int) {
	if give := s.lent[worker]; give != nil {
		s.lent[worker] = nil
		give()
	}
}

// Len returns the number of changes. Len and the two methods below implement docfile.Source.
func (s *frames) Len() int { return len(s.list) }

func (s *frames) Folders() []*docfile.Folder {
	fl := s.f.fl
	var folders []*docfile.Folder
	for _, k := range fl.engine.Present() {
		// else nothing in that folder has to be made durable
		if k.Kind != kind.Assemblies || fl.engine.State().MembershipRebuilt() {
			folders = append(folders, k.Folder)
		}
	}
	return folders
}

func (s *frames) Change(worker, i int, c *docfile.Change) (bool, error) {
	is, err := s.change(worker, i, c)
	if err != nil && s.f.rescues != nil && s.ctx.Err() == nil && s.f.spares(s.list[i].Pos, err) {
		return false, nil
	}
	return is, err
}

// spares reports whether a rescue omits the document with the given version, which cannot be written to a file
// because of err, and still writes the other documents. If so, spares records the document as omitted.
func (f *filing) spares(version wal.LSN, err error) bool {
	over := (*errs.InflatedError)(nil)
	if errors.As(err, &over) {
		f.inflates.Store(over)
	} else if !errors.Is(err, errs.ErrCorrupt) && !errors.Is(err, errs.ErrTruncated) {
		return false
	}
	f.rescues.sparesDocument(version, err)
	return true
}

func (s *frames) change(worker, i int, c *docfile.Change) (bool, error) {
	s.giveBack(worker)
	e, err := s.f.readers[worker].At(s.ctx, s.list[i].Pos)
	if err != nil {
		return false, err
	}
	fl, id, at := s.f.fl, e.Key[1:], e.LSN
	if e.Key[0] == record.Working {
		if !s.f.behind || !fl.superseded(fl.engine.Kinds().Scopes, &e) {
			s.f.worked.add(strings.Clone(e.Key[1:]))
		}
		return false, nil
	}
	k := fl.engine.Kinds().Of(e.Key)
	if k == nil {
		return false, nil
	}
	if s.f.behind && fl.superseded(k, &e) {
		return false, nil
	}
	view, err := state.Read(&e)
	if err != nil {
		return false, err
	}
	*c = docfile.Change{
		Folder: k.Folder, Name: k.FileName(id), Delete: e.Delete, Mtime: e.Time, ID: id, Version: at,
		Ours: func(info vfs.Info, data func() ([]byte, error)) bool {
			return fl.Ours(s.ctx, k, id, at, info, data)
		},
	}
	if c.Keep = k.FileWins; k.FileWins && !e.Delete {
		line, _, err := state.LineIn(&e)
		if err != nil {
			return false, err
		}
		c.Mtime = engine.TimeOf(&line)
		c.Found = !engine.SameTime(c.Mtime, e.Time)
	}
	if view.Overpacked() {
		if over := s.f.inflates.Load(); over != nil {
			return false, over
		}
		if err := s.f.unpacks(s.ctx, at); err != nil {
			return false, err
		}
	}
	if c.Bytes, s.lent[worker], err = fl.engine.Codec().Lend(s.ctx, &view, places.StoredMost); err != nil {
		if s.ctx.Err() != nil {
			return false, s.ctx.Err()
		}
		// The entry never becomes a document, and the others must not wait: readers get an error, and verify reports
		// it.
		fl.NoteRefused(&e, state.Invalid(&e, err))
		return false, nil
	}
	before, err := fl.standing(s.ctx, k, id, view.Previous, s.f.flushed)
	if err != nil {
		return false, err
	}
	if before.LSN != 0 && !before.Line.Deleted {
		c.Before = docfile.Before{Exists: true, Size: before.Line.Size, Mtime: time.UnixMicro(before.Line.Mtime)}
	}
	return true, nil
}

// standing returns the version of a document that the document's file should have now. This is the newest version below
// the position flushed; standing finds it by following the chain of previous versions. It returns the zero value if no
// such version exists.
func (fl *Flusher) standing(ctx context.Context, k *engine.Kind, id string, previous,
	flushed wal.LSN) (engine.Version, error) {
	for previous != 0 {
		if previous < fl.engine.State().From() {
			line, err := fl.engine.State().Line(k.Letter, id)
			if errors.Is(err, errs.ErrNotFound) {
				return engine.Version{}, nil
			}
			return engine.Version{LSN: line.Version, Line: line}, err
		}
		v, view, err := fl.engine.Frame(ctx, k, id, previous)
		if engine.NoVersion(err) {
			return engine.Version{}, nil // the file is then judged by its bytes
		}
		if err != nil {
			return v, err
		}
		if previous < flushed {
			return v, nil
		}
		previous = view.Previous
	}
	return engine.Version{}, nil
}

// Ours reports whether a file contains a version of this document that the store has written: the version newest, one
// in its chain of previous versions, or the version that the index names. For a kind whose files have priority over
// the store's version, the chain ends with the newest version that was adopted from the file.
func (fl *Flusher) Ours(ctx context.Context, k *engine.Kind, id string, newest wal.LSN, info vfs.Info,
	data func() ([]byte, error)) bool {
	var content []byte
	same := func(line *index.Entry) bool {
		if line.Size != info.Size {
			return false
		}
		if content == nil {
			var err error
			if content, err = data(); err != nil {
				return false
			}
		}
		return sha256.Sum256(content) == line.ContentHash
	}
	for at := newest; at != 0 && at >= fl.engine.State().From(); {
		v, view, err := fl.engine.Frame(ctx, k, id, at)
		if err != nil {
			break
		}
		if !v.Line.Deleted && same(&v.Line) {
			return true
		}
		if k.FileWins && index.HasMtime(view.Line) && !fl.engine.Log().Notes().Distrusted() {
			return false // this version was in the file, so an older one in it is an edit
		}
		at = view.Previous
	}
	line, err := fl.engine.State().Line(k.Letter, id)
	return err == nil && same(&line)
}

// unblock handles documents that could not be written because something other than a file is at their paths. It moves
// these obstacles to quarantine, and then writes the documents.
func (fl *Flusher) unblock(ctx context.Context, src *frames, blocked []docfile.Blocked) error {
	again := src.f.frames(ctx, nil)
	defer again.done()
	defer src.done()
	for _, b := range blocked {
		var c docfile.Change
		if ok, err := src.Change(0, b.Change, &c); err != nil || !ok {
			return err
		}
		if err := fl.MoveAway(&c, b.Err); err != nil {
			return err
		}
		again.list = append(again.list, src.list[b.Change])
	}
	placed, result, err := fl.files.Put(ctx, again)
	if err == nil {
		err = placed.End(placed.Sync())
	}
	fl.Edited(ctx, result.Edits)
	if err == nil && len(result.Blocked) > 0 {
		err = result.Blocked[0].Err
	}
	return err
}

// MoveAway moves the obstacle at the path of a document to quarantine: something that is not a file. If there is
// no obstacle, MoveAway does nothing. cause is the error with which writing the document failed.
func (fl *Flusher) MoveAway(c *docfile.Change, cause error) error {
	name := c.Folder.InTheWay(c.Name)
	if name == "" {
		return nil // gone meanwhile, or removed by a change of the same round
	}
	note := docfile.Note{Why: cause.Error(), From: c.Folder.Name() + "/" + name}
	if name == c.Name { // else it is in the place of a folder, and not a version of this document
		note.ID, note.Version = c.ID, c.Version
	}
	where, err := fl.files.Aside(c.Folder.Path(name), note)
	if err != nil {
		return fmt.Errorf("%s/%s cannot be written: %w; moving the obstacle to quarantine failed: %w", c.Folder.Name(),
			c.Name, cause, err)
	}
	fl.engine.Env().Logger.Warn("moved something that is not a file from the path of a document to quarantine",
		"what", cause, "where", where)
	fl.engine.Env().Event(env.Event{Kind: env.EventEdit, ID: c.ID, Path: where, Err: cause})
	return nil
}

// Edited logs and reports the files that the store did not write and that were moved to quarantine.
func (fl *Flusher) Edited(_ context.Context, edits []docfile.Edit) {
	for _, e := range edits {
		fl.engine.Env().Logger.Warn("moved a file that the store did not write to quarantine", "name", e.Name,
			"where", e.Where)
		fl.engine.Health().Edit()
		fl.engine.Env().Event(env.Event{Kind: env.EventEdit, Path: e.Where, Note: filepath.Join(e.Folder, e.Name),
			Bytes: e.Info.Size})
	}
}
