package adopt

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal"
)

// JudgeEdit decides about the file of a document that differs from the version in the index, and returns the version
// that readers get. It first checks again whether the file differs. Under flush.lock no process of the store changes
// files, so a difference is an edit by hand, or damage.
//
// A valid edit is adopted: it goes through the log like every change. A file that cannot be adopted stays where it is,
// and the error names the reason; as long as the log has the previous version, readers get that version.
func (ed *Adopter) JudgeEdit(ctx context.Context, k *engine.Kind, id string) (engine.Version, error) {
	if err := ed.engine.Writable(); err != nil {
		return ed.unread(ctx, k, id)
	}
	if _, err := k.Stat(k.FileName(id)); errors.Is(err, fs.ErrNotExist) {
		if err := ed.unwatched(ctx, k); err != nil {
			return engine.Version{}, err
		}
	}
	if v, ok := ed.beingSaved(ctx, k, id); ok {
		return v, nil
	}
	held, unlock, err := ed.flusher.Lock(ctx)
	if err != nil {
		return engine.Version{}, err
	}
	v, err := ed.judgeLocked(ctx, held, k, id)
	unlock()
	if errors.Is(err, errs.ErrConflict) || errors.Is(err, engine.ErrMoved) {
		return ed.engine.Find(ctx, k, id, true) // another writer was faster
	}
	return v, err
}

// beingSaved returns the newest version of a document whose file has just been emptied, for a kind whose documents may
// be empty: an editor that saves in place empties the file first. A later read decides about the file. The bool result
// is false if the file was not just emptied, or if neither the log nor the archive has the version.
func (ed *Adopter) beingSaved(ctx context.Context, k *engine.Kind, id string) (engine.Version, bool) {
	if !k.Opaque {
		return engine.Version{}, false
	}
	info, err := k.Stat(k.FileName(id))
	if err != nil || info.Size > 0 {
		return engine.Version{}, false
	}
	if age := ed.engine.Env().Clock().Sub(info.Mtime); age < 0 || age >= quietFor {
		return engine.Version{}, false
	}
	place, err := ed.engine.State().Find(k.Letter, id)
	if err != nil {
		return engine.Version{}, false
	}
	return ed.engine.FromLog(ctx, k, id, place.Version)
}

// unread does what JudgeEdit does, for a process that may not write to the store. It adopts nothing, and returns the
// newest version from the log or the archive. If neither has that version, it returns an error.
func (ed *Adopter) unread(ctx context.Context, k *engine.Kind, id string) (engine.Version, error) {
	place, err := ed.engine.State().Find(k.Letter, id)
	if err != nil {
		return engine.Version{}, err
	}
	if v, ok := ed.engine.FromLog(ctx, k, id, place.Version); ok {
		return v, nil
	}
	if _, _, err := k.Read(k.FileName(id), places.StoredMost); vfs.IsPermission(err) {
		return engine.Version{}, ed.engine.Env().IOError("reading", k.Path(k.FileName(id)), err)
	}
	return engine.Version{}, &errs.CorruptionError{Path: k.File(id), Offset: -1, LSN: place.Version,
		Err: engine.ErrMismatch}
}

func (ed *Adopter) judgeLocked(ctx context.Context, held *wal.Held, k *engine.Kind, id string) (engine.Version, error) {
	if err := ed.engine.CatchUp(ctx); err != nil {
		return engine.Version{}, err
	}
	v := ed.verdict(ctx, held, k, id)
	ed.carryOut(ctx, held, k, []*Verdict{v})
	return v.Version, v.Err
}

// Verdict is the decision about a file that differs from its entry in the index. See carryOut.
type Verdict struct {
	ID       string
	name     string         // name of the file in the folder, for callers that judge several files
	Adopt    *Adoption      // the file is to be adopted
	back     bool           // the version is to be restored into the file; the existing file is set aside
	restored bool           // back restores a missing or damaged file
	note     string         // text for the event that reports the file or its restoration
	Version  engine.Version // version that readers get
	Err      error
}

// verdict decides what to do about one file that differs from the index. It changes nothing.
func (ed *Adopter) verdict(ctx context.Context, _ *wal.Held, k *engine.Kind, id string) *Verdict {
	is := &Verdict{ID: id, name: k.FileName(id)}
	is.Err = ed.decide(ctx, k, is)
	return is
}

func (ed *Adopter) decide(ctx context.Context, k *engine.Kind, verdict *Verdict) error {
	id := verdict.ID
	place, err := ed.engine.State().Find(k.Letter, id)
	if err != nil {
		return err
	}
	v, err := ed.engine.Read(ctx, k, id, place, true)
	if !errors.Is(err, engine.ErrMismatch) {
		verdict.Version = v
		return err
	}
	data, info, rerr := ed.read(ctx, k, verdict.name)
	old := engine.Version{LSN: place.Version, Line: place.Entry}
	if place.InLog {
		if old, _, err = ed.engine.Frame(ctx, k, id, place.Version); err != nil {
			return err
		}
	}
	switch {
	case errors.Is(rerr, fs.ErrNotExist) && ed.deletesByHand(k):
		if v, ok := ed.engine.FromLog(ctx, k, id, old.LSN); ok {
			verdict.Version = v // the watching process, or a later read, decides whether it was deleted
			return nil
		}
		return ed.restore(ctx, k, verdict, old, rerr)
	case errors.Is(rerr, fs.ErrNotExist) && ed.rootReplaced(k, verdict.name): // the user's thing at its path stays
		verdict.Version, err = ed.versionFromLog(ctx, k, id, old.LSN)
		return err
	case k.FileWins && engine.NotOurs(rerr): // a link, or a large file: it is the user's, and stays
		return ed.keepServing(ctx, k, verdict, old, rerr, "the file stays as it is",
			&errs.CorruptionError{Path: k.File(id), Offset: -1, LSN: old.LSN,
				Err: fmt.Errorf("the log no longer has the previous version: run memctl verify: %w", rerr)})
	case errors.Is(rerr, fs.ErrNotExist), errors.Is(rerr, errs.ErrCorrupt), engine.NotOurs(rerr):
		return ed.restore(ctx, k, verdict, old, rerr)
	case vfs.IsPermission(rerr):
		err := ed.engine.Env().IOError("reading", k.Path(verdict.name), rerr)
		return ed.keepServing(ctx, k, verdict, old, err, "no permission to read the file", err)
	case rerr != nil:
		return ed.engine.Env().IOError("reading", k.Path(verdict.name), rerr)
	case engine.SameTime(info.Mtime, engine.TimeOf(&old.Line)) && sha256.Sum256(data) != old.Line.ContentHash:
		// An edit always changes the time: this is damage, also if the file is shorter now.
		return ed.restore(ctx, k, verdict, old, errors.New("the content has changed, but the time of the file has not"))
	case sha256.Sum256(data) == old.Line.ContentHash:
		// Only the time has changed, by a copy or a checkout.
		verdict.Version, verdict.Version.Doc = old, data
		return nil
	}
	p, err := k.ParseEdit(data, id)
	if err != nil {
		if other, perr := k.Parse(data, k.IDAt(verdict.name)); perr != nil {
			err = ed.engine.Kinds().Elsewhere(k, data, perr)
		} else if other.ID != id {
			err = k.Misplaced(other.ID)
		}
		return ed.keepServing(ctx, k, verdict, old, err, "the file was edited by hand and is not valid",
			&errs.CorruptionError{Path: k.File(id), Offset: -1, LSN: old.LSN,
				Err: fmt.Errorf("the file was edited by hand and is not valid, and the log no longer has the previous version: "+
					"correct the file, or run memctl verify: %w", err)})
	}
	if k.Conflicts(old.Line.UpdatedAt, &p) {
		// The edit is based on an older version than the newest one in the file: an editor that had the file open for
		// an hour overwrote later changes. A file with a later time continues the newest version: another copy of the
		// store wrote it, and a pull has brought it.
		if v, ok := ed.conflict(ctx, k, old, &p); ok {
			verdict.Version, verdict.back = v, true
			return nil
		}
	}
	verdict.Adopt, err = ed.adoption(ctx, k, &p, data, info.Mtime, old)
	return err
}

// keepServing leaves a file that cannot be adopted in place, reports the file and cause once, and serves the
// previous version, old. note is the first part of the note in the report. If neither the log nor the archive has
// the previous version any more, keepServing returns the error lost.
func (ed *Adopter) keepServing(ctx context.Context, k *engine.Kind, verdict *Verdict, old engine.Version, cause error,
	note string, lost error) error {
	v, ok := ed.engine.FromLog(ctx, k, verdict.ID, old.LSN)
	if !ok {
		return lost
	}
	if info, err := k.Stat(verdict.name); err != nil || ed.engine.Health().TellOnce(k.File(verdict.ID), info, cause) {
		ed.engine.Env().Event(env.Event{Kind: env.EventDrift, ID: verdict.ID, Path: k.File(verdict.ID), Err: cause,
			Note: note + "; the previous version is served"})
	}
	verdict.Version = v
	return nil
}

// conflict reports whether an edited file is based on an older version than the newest one. p is the parsed content of
// the file; old is the newest version, whose content conflict reads from the log or the archive. If the result is
// true, conflict has reported the edit to the host, and returns the newest version with its content; the caller keeps
// that version and sets the edit aside. If neither the log nor the archive has the newest version any more, the edit
// is the only copy, and the result is false.
func (ed *Adopter) conflict(ctx context.Context, k *engine.Kind, old engine.Version,
	p *engine.Parsed) (engine.Version, bool) {
	v, ok := ed.engine.FromLog(ctx, k, p.ID, old.LSN)
	if !ok {
		return engine.Version{}, false
	}
	// The time of an adopted edit is that of its adoption. Its file still has the time of the version before, or of the
	// copy that it came from, and so has a further edit of it.
	if stood, err := k.Parse(v.Doc, p.ID); err == nil && !p.Updated.Before(*stood.Updated) {
		return engine.Version{}, false
	}
	why := fmt.Errorf("the edit is based on the version that was written at %s, but the newest version was written "+
		"at %s", p.Updated.Format(time.RFC3339Nano), old.Line.UpdatedAt.Format(time.RFC3339Nano))
	ed.engine.Env().Event(env.Event{Kind: env.EventEdit, ID: p.ID, Path: k.File(p.ID), Err: why})
	return v, true
}

const deletedByHand = "the file was deleted by hand; the log has its content"

// restore decides to restore a missing or damaged file from the version old, which restore reads from the log or the
// archive. It stores in verdict that readers get this version, and, if config.json allows repairs, that the version is
// written to the file. cause is the reason why the file cannot be used; it matches fs.ErrNotExist if the file is
// missing. The store did not write an existing file, so the flusher moves that file to quarantine when it writes the
// restored one. If neither the log nor the archive has the version, the error is a *errs.CorruptionError.
func (ed *Adopter) restore(ctx context.Context, k *engine.Kind, verdict *Verdict,
	old engine.Version, cause error) error {
	v, ok := ed.engine.FromLog(ctx, k, verdict.ID, old.LSN)
	if !ok {
		return &errs.CorruptionError{Path: k.File(verdict.ID), Offset: -1, LSN: old.LSN,
			Err: fmt.Errorf("%w, and the log no longer has the version: run memctl verify", cause)}
	}
	verdict.Version = v
	verdict.restored = ed.engine.Settings().Now().MayRepair() && !ed.engine.Settings().Gone()
	verdict.back = verdict.restored
	if errors.Is(cause, fs.ErrNotExist) { // not damage: it was deleted by hand
		if verdict.note = deletedByHand; !verdict.back {
			ed.engine.Env().Event(env.Event{Kind: env.EventDrift, ID: verdict.ID, Path: k.File(verdict.ID),
				Note: verdict.note, Err: fs.ErrNotExist})
		}
		return nil
	}
	what := "the log has the content"
	if verdict.restored && !ed.engine.Env().ReadOnly {
		what = "restored from the log"
	}
	ed.engine.Env().Event(env.Event{Kind: env.EventCorruption, ID: verdict.ID, Path: k.File(verdict.ID),
		Err: fmt.Errorf("%w; %s", cause, what)})
	return nil
}
