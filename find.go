package varve

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal"
)

// version is one version of a document: its line, and its document once read.
type version struct {
	lsn  wal.LSN
	line index.Entry
	doc  []byte
}

func (v *version) expired(now time.Time) bool {
	return !v.line.ExpiresAt.IsZero() && !now.Before(v.line.ExpiresAt)
}

// left says that this version, which may be newer than the line by which it was chosen,
// has expired, or that its line does not pass: the memory is another session's now.
func (v *version) left(f *filters, id string, now time.Time) bool {
	return v.expired(now) || !f.line(id, &v.line, now)
}

// findTries bounds how often a look-up starts again because what it found was
// replaced, flushed or released meanwhile. Each time it is somebody's progress.
const findTries = 100

// find returns the newest durable version of a document, with its document if
// that is wanted. errs.ErrNotFound if there is none.
func (st *Store) find(ctx context.Context, k *kind, id string, doc bool) (version, error) {
	var last error
	for range findTries {
		if err := st.sight(ctx); err != nil {
			return version{}, err
		}
		seen, swaps := st.log.Applied(), st.state.Swaps()
		place, err := st.state.Find(k.letter, id)
		if st.log.Applied() < seen {
			continue // this process starts again from newer views
		}
		if err != nil {
			if errors.Is(err, errs.ErrCorrupt) && st.healed(swaps) {
				last = err
				continue
			}
			st.rot(err)
			return version{}, st.beyondDamage(err)
		}
		v, err := st.read(ctx, k, id, place, doc)
		switch {
		case err == nil:
			return v, nil
		case errors.Is(err, errs.ErrTruncated), errors.Is(err, errMoved):
			if rerr := st.refresh(); rerr != nil {
				err = rerr
			}
		case errors.Is(err, errMismatch):
			if !st.changed(k, id, place) {
				return st.judge(ctx, k, id)
			}
		default:
			return version{}, err
		}
		last = err
	}
	return version{}, fmt.Errorf("reading %s %s: it changes faster than it can be read: %w", k.noun, quote(id), last)
}

// rot notes that the index is damaged: it is made again in the next round.
func (st *Store) rot(err error) {
	if errors.Is(err, errs.ErrCorrupt) && st.flusher.rotten.CompareAndSwap(false, true) {
		st.flusher.changed(st, st.settings.Now().FlushAfter())
	}
}

// containing are the assemblies that contain a memory, and the version of that.
func (st *Store) containing(id string) ([]string, wal.LSN, error) {
	assemblies, newest, err := st.state.Containing(id)
	if err != nil {
		st.rot(err)
		return nil, 0, fmt.Errorf("the assemblies of memory %s: %w", quote(id), err)
	}
	return assemblies, newest, nil
}

// settled reads the newest version and its document for one who has flush.lock,
// and so must not judge edits: what does not match is ErrCorrupt, unless the log
// has it.
func (st *Store) settled(ctx context.Context, k *kind, id string) (version, error) {
	place, err := st.state.Find(k.letter, id)
	if err != nil {
		return version{}, st.beyondDamage(err)
	}
	v, err := st.read(ctx, k, id, place, true)
	if err == nil {
		return v, nil
	}
	if v, ok := st.fromLog(ctx, k, id, place.Version); ok {
		return v, nil
	}
	if errors.Is(err, errMismatch) && !vfs.IsPermission(err) {
		err = errors.Join(errs.ErrCorrupt, err)
	}
	return v, err
}

// beyondDamage keeps "not found" from being said of what may stand behind the
// damage in the log.
func (st *Store) beyondDamage(err error) error {
	if d := st.log.Damage(); d != nil && errors.Is(err, errs.ErrNotFound) {
		return d
	}
	return err
}

func (st *Store) changed(k *kind, id string, was state.Place) bool {
	if err := st.log.CatchUp(context.Background()); err != nil {
		return false
	}
	now, err := st.state.Find(k.letter, id)
	return err != nil || now.Version != was.Version
}

// What read finds instead of what it was sent for.
var (
	errMismatch = errors.New("the file is not the version that the index names")
	errMoved    = errors.New("another key lies at this position")
)

// read reads the version at a place.
func (st *Store) read(ctx context.Context, k *kind, id string, place state.Place, doc bool) (version, error) {
	if place.InLog {
		return st.readLog(ctx, k, id, place.Version, doc)
	}
	v := version{lsn: place.Version, line: place.Entry}
	if !doc {
		return v, nil
	}
	data, info, err := k.Read(docfile.FileName(id), fileLimit)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errs.ErrCorrupt) || notOurs(err) || vfs.IsPermission(err) {
			return v, fmt.Errorf("%w: %w", errMismatch, err)
		}
		return v, st.env.IOError("reading", k.Path(docfile.FileName(id)), err)
	}
	if !matches(&v.line, info) || sha256.Sum256(data) != v.line.ContentHash {
		return v, errMismatch
	}
	v.doc = data
	return v, nil
}

// notOurs says of an error of reading a document's place that what stands there is
// nothing of ours: a folder, a link, or more than any document is.
func notOurs(err error) bool {
	return errors.Is(err, errs.ErrInvalid) || errors.Is(err, errs.ErrTooLarge)
}

// readLog reads a version from its frame. Below flushed the file must agree: a
// size or time that does not is somebody's edit.
func (st *Store) readLog(ctx context.Context, k *kind, id string, at wal.LSN, doc bool) (version, error) {
	v, view, err := st.frame(ctx, k, id, at)
	if err != nil || !doc {
		return v, err
	}
	if at < st.log.Flushed() {
		info, err := k.Stat(docfile.FileName(id))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return v, st.env.IOError("looking at", k.Path(docfile.FileName(id)), err)
		}
		if err != nil || !matches(&v.line, info) {
			return v, errMismatch
		}
	}
	if v.doc, err = st.codec.Doc(&view, fileLimit); err != nil {
		err = state.Invalid(&wal.Entry{LSN: at}, err)
	}
	return v, err
}

// frame reads the record of a version and its line.
func (st *Store) frame(ctx context.Context, k *kind, id string, at wal.LSN) (version, record.View, error) {
	e, err := st.log.ReadAt(ctx, at)
	if err != nil {
		return version{}, record.View{}, err
	}
	if len(e.Key) == 0 || e.Key[0] != k.letter || e.Key[1:] != id {
		return version{}, record.View{}, errMoved
	}
	line, view, err := state.LineIn(&e)
	if err != nil {
		return version{}, view, err
	}
	return version{lsn: at, line: line}, view, nil
}
