package adopt

import (
	"context"
	"errors"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal"
)

// settling is one step of Settle. It deletes the documents whose files were deleted by hand, or restores these files.
// It also restores documents that are in a file with another name. Its errors concern all documents, not a single one.
type settling struct {
	ed      *Adopter
	ctx     context.Context
	k       *engine.Kind
	adopt   bool                // a deletion is adopted
	unseen  bool                // no process watched
	strays  map[string][]*stray // by id
	gone    map[string]bool     // all ids, for a kind with companions
	lost    map[string]bool     // ids in folders that vanished by accident: no deletion is adopted
	roots   []string            // the folders that have to exist
	beyond  map[string]bool     // ids in lost that nothing can restore
	deleted []*commit.Part
	*failures
	last    map[string]bool // ids in deleted of documents of which no copy is left
	back    []*Verdict      // from log, archive or a stray file
	edits   []*Verdict      // documents of which only a stray file has a version
	bytes   int             // size in bytes of the documents in back and edits
	changed bool            // a flush is necessary
}

// mostFailures is the number of restores that fail in a row after which settling no longer tries each file of a failed
// group by itself.
const mostFailures = 64

// failures counts the files of one attempt that could not be put back.
type failures struct {
	inRow int   // number of failed restores since the last successful one
	left  int   // number of files that were given up without trying each by itself
	err   error // error of the last group that was given up
}

func (s *settling) all(ids []string) error {
	held, unlock, err := s.ed.flusher.Lock(s.ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := s.ed.engine.CatchUp(s.ctx); err != nil {
		return err
	}
	for _, id := range ids {
		if err := s.one(held, id); err != nil {
			if err := s.failed(id, err); err != nil {
				return err
			}
		}
		if s.bytes >= commit.PartsBytes {
			if err := s.putBack(held); err != nil {
				return err
			}
		}
	}
	if err := s.putBack(held); err != nil {
		return err
	}
	s.findLast()
	s.ed.commits.CommitParts(s.ctx, held, s.k, s.deleted)
	for _, p := range s.deleted {
		switch {
		case p.Err == nil:
			s.changed = true
			s.ed.engine.Health().Edit()
			e := env.Event{Kind: env.EventDeleted, ID: p.ID, LSN: p.Entry.LSN, Path: s.k.File(p.ID)}
			if s.last[p.ID] {
				e.Note = "the file was the only copy: neither log nor archive has its content"
			}
			s.ed.engine.Env().Event(e)
		case errors.Is(p.Err, errs.ErrConflict): // the document was written meanwhile
		default:
			if err := s.failed(p.ID, p.Err); err != nil {
				return err
			}
		}
	}
	return nil
}

// findLast records in last the documents in deleted of which no copy is left. Such a document cannot be recovered, and
// the event of its deletion says so.
func (s *settling) findLast() {
	if len(s.deleted) == 0 {
		return
	}
	reach := s.ed.engine.Log().Archive().Reach()
	defer reach.Close()
	for _, p := range s.deleted {
		if at := p.Precondition.LSN; !reach.Live(at) && !reach.Keeps(p.Entry.Key, at) {
			if s.last == nil {
				s.last = map[string]bool{}
			}
			s.last[p.ID] = true
		}
	}
}

// one decides what happens to one document whose file may be missing: it collects the deletion of the document, or the
// version to be restored. If the file exists again, nothing is done.
func (s *settling) one(held *wal.Held, id string) error {
	v, gone, err := s.ed.stillGone(s.ctx, held, s.k, id)
	if err != nil {
		return err
	}
	if !gone {
		return nil
	}
	strays := s.strays[id]
	adopt := len(strays) == 0 && s.adopt && !s.lost[id]
	by := ""
	if s.lost[id] && s.k.FileWins {
		of, _ := s.k.Document(id) // a companion goes with its document
		by = s.k.ExcludedBy(s.k.FileName(of))
	}
	if by != "" && holdsOne(by, s.roots) {
		return nil // nothing can be put back below that file; status names it
	}
	if len(strays) == 0 && by != "" && s.ed.engine.Settings().Now().AdoptsDeletions() {
		// The user put something else there, so the file was not lost by accident. Its content stays in the history.
		_, adopt = s.ed.engine.FromLog(s.ctx, s.k, id, v.LSN)
	}
	if adopt && s.unseen { // no process saw it go: do not give up the last copy
		_, adopt = s.ed.engine.FromLog(s.ctx, s.k, id, v.LSN)
	}
	if adopt {
		s.deleted = append(s.deleted, s.ed.DeletionPart(s.k, id, v.LSN))
		return s.companion(id)
	}
	is := &Verdict{ID: id}
	if len(strays) > 0 {
		is, err = s.ed.renamed(s.ctx, held, s.k, id, v, strays)
	} else {
		is.Version, err = s.ed.versionFromLog(s.ctx, s.k, id, v.LSN)
	}
	switch {
	case err != nil:
		if errors.Is(err, errBeyond) {
			s.beyond[id] = true
		}
		return err
	case is.Adopt != nil:
		s.edits, s.bytes = append(s.edits, is), s.bytes+len(is.Adopt.file)
	default:
		s.back, s.bytes = append(s.back, is), s.bytes+len(is.Version.Doc)
	}
	return nil
}

// companion deletes the companion of a deleted document, unless the file of the companion is missing too: then the
// companion is one of the documents that are settled anyway.
func (s *settling) companion(id string) error {
	if s.k.Companion == nil {
		return nil
	}
	other, ok := s.k.Companion(id)
	if !ok || s.gone[other] {
		return nil
	}
	v, err := s.ed.engine.Find(s.ctx, s.k, other, false)
	if err == nil {
		s.deleted = append(s.deleted, s.ed.DeletionPart(s.k, other, v.LSN))
	}
	return ignoreNotFound(err)
}

// putBack restores the documents that have been collected so far.
func (s *settling) putBack(held *wal.Held) error {
	back, edits := s.back, s.edits
	s.back, s.edits, s.bytes = nil, nil, 0
	if err := s.putBackEach(held, back); err != nil {
		return err
	}
	s.ed.AdoptAll(s.ctx, held, s.k, edits)
	for _, is := range edits {
		switch {
		case is.Err == nil:
			s.changed = true // the flush writes its file
		case errors.Is(is.Err, errs.ErrConflict): // the document was written meanwhile
		default:
			if err := s.failed(is.ID, is.Err); err != nil {
				return err
			}
		}
	}
	return nil
}

// putBackEach restores documents together. If that fails, putBackEach tries each half of the list, so that one file
// that cannot be restored does not prevent restoring the others.
func (s *settling) putBackEach(held *wal.Held, list []*Verdict) error {
	if len(list) == 0 {
		return nil
	}
	_, err := s.ed.putAllBack(s.ctx, held, s.k, list)
	switch {
	case err == nil:
		s.inRow = 0
		for _, is := range list {
			s.restored(is)
		}
		return nil
	case len(list) == 1 || !isOfOne(err):
		s.inRow++
		for _, is := range list {
			if err := s.failed(is.ID, err); err != nil {
				return err
			}
		}
		return nil
	case s.inRow >= mostFailures:
		s.left, s.err = s.left+len(list), err
		return nil
	}
	if err := s.putBackEach(held, list[:len(list)/2]); err != nil {
		return err
	}
	return s.putBackEach(held, list[len(list)/2:])
}

// isOfOne reports whether an error of restoring files may concern a single file, as opposed to the disk or the
// process.
func isOfOne(err error) bool {
	return !vfs.IsDiskFull(err) && !errors.Is(err, errs.ErrSyncFailed) && !errors.Is(err, errs.ErrClosed) &&
		!errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

func (s *settling) restored(verdict *Verdict) {
	e := env.Event{Kind: env.EventRestored, ID: verdict.ID, Path: s.k.File(verdict.ID), LSN: verdict.Version.LSN,
		Writer: s.ed.engine.Writer(verdict.Version.Line.By, verdict.Version.LSN)}
	if strays := s.strays[verdict.ID]; len(strays) > 0 {
		e.Note = strays[0].path() + " contains the id of the document, so the document was not deleted; to delete " +
			"the document: memctl rm"
	} else if s.unseen {
		e.Note = deletedByHand
	}
	s.ed.engine.Env().Event(e)
}

// failed reports to the host that err prevents restoring or deleting the document id, and returns nil. If err concerns
// all documents, because the context has ended or the store is closed or read-only, failed only returns err.
func (s *settling) failed(id string, err error) error {
	if s.ctx.Err() != nil || errors.Is(err, errs.ErrClosed) || errors.Is(err, errs.ErrReadOnly) {
		return err
	}
	s.ed.engine.Env().Logger.Warn("a file is missing", "path", s.k.File(id), "err", err)
	s.ed.engine.Env().Event(env.Event{Kind: env.EventDrift, ID: id, Path: s.k.File(id), Err: err})
	return nil
}
