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
	"github.com/varve-db/varve/internal/places"
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
func (eng *engine) find(ctx context.Context, k *kind, id string, doc bool) (version, error) {
	var last error
	for range findTries {
		if err := eng.sight(ctx); err != nil {
			return version{}, err
		}
		seen, swaps := eng.log.Applied(), eng.state.Swaps()
		place, err := eng.state.Find(k.Letter, id)
		if eng.log.Applied() < seen {
			continue // this process starts again from newer views
		}
		if err != nil {
			if errors.Is(err, errs.ErrCorrupt) && eng.healed(swaps) {
				last = err
				continue
			}
			eng.rot(err)
			return version{}, eng.beyondDamage(err)
		}
		v, err := eng.read(ctx, k, id, place, doc)
		switch {
		case err == nil:
			return v, nil
		case errors.Is(err, errs.ErrTruncated), errors.Is(err, errMoved):
			if rerr := eng.refresh(); rerr != nil {
				err = rerr
			}
		case errors.Is(err, errMismatch):
			if !eng.changed(k, id, place) {
				return eng.judge(ctx, k, id)
			}
		default:
			return version{}, err
		}
		last = err
	}
	return version{}, fmt.Errorf("reading %s %s: it changes faster than it can be read: %w", k.Noun, errs.Quote(id), last)
}

// rot notes that the index is damaged: it is made again in the next round.
func (eng *engine) rot(err error) {
	if errors.Is(err, errs.ErrCorrupt) && eng.rotten.CompareAndSwap(false, true) {
		eng.dueNow()
	}
}

// containing are the assemblies that contain a memory, and the version of that.
func (eng *engine) containing(id string) ([]string, wal.LSN, error) {
	assemblies, newest, err := eng.state.Containing(id)
	if err != nil {
		eng.rot(err)
		return nil, 0, fmt.Errorf("the assemblies of memory %s: %w", errs.Quote(id), err)
	}
	return assemblies, newest, nil
}

// settled reads the newest version and its document for one who has flush.lock,
// and so must not judge edits: what does not match is ErrCorrupt, unless the log
// has it.
func (eng *engine) settled(ctx context.Context, k *kind, id string) (version, error) {
	place, err := eng.state.Find(k.Letter, id)
	if err != nil {
		return version{}, eng.beyondDamage(err)
	}
	v, err := eng.read(ctx, k, id, place, true)
	if err == nil {
		return v, nil
	}
	if v, ok := eng.fromLog(ctx, k, id, place.Version); ok {
		return v, nil
	}
	if errors.Is(err, errMismatch) && !vfs.IsPermission(err) {
		err = errors.Join(errs.ErrCorrupt, err)
	}
	return v, err
}

// beyondDamage keeps "not found" from being said of what may stand behind the
// damage in the log.
func (eng *engine) beyondDamage(err error) error {
	if d := eng.log.Damage(); d != nil && errors.Is(err, errs.ErrNotFound) {
		return d
	}
	return err
}

func (eng *engine) changed(k *kind, id string, was state.Place) bool {
	if err := eng.log.CatchUp(context.Background()); err != nil {
		return false
	}
	now, err := eng.state.Find(k.Letter, id)
	return err != nil || now.Version != was.Version
}

// What read finds instead of what it was sent for.
var (
	errMismatch = errors.New("the file is not the version that the index names")
	errMoved    = errors.New("another key lies at this position")
)

// read reads the version at a place.
func (eng *engine) read(ctx context.Context, k *kind, id string, place state.Place, doc bool) (version, error) {
	if place.InLog {
		return eng.readLog(ctx, k, id, place.Version, doc)
	}
	v := version{lsn: place.Version, line: place.Entry}
	if !doc {
		return v, nil
	}
	data, info, err := k.Read(docfile.FileName(id), places.StoredMost)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errs.ErrCorrupt) || notOurs(err) || vfs.IsPermission(err) {
			return v, fmt.Errorf("%w: %w", errMismatch, err)
		}
		return v, eng.env.IOError("reading", k.Path(docfile.FileName(id)), err)
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
func (eng *engine) readLog(ctx context.Context, k *kind, id string, at wal.LSN, doc bool) (version, error) {
	v, view, err := eng.frame(ctx, k, id, at)
	if err != nil || !doc {
		return v, err
	}
	if at < eng.log.Flushed() {
		info, err := k.Stat(docfile.FileName(id))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return v, eng.env.IOError("looking at", k.Path(docfile.FileName(id)), err)
		}
		if err != nil || !matches(&v.line, info) {
			return v, errMismatch
		}
	}
	if v.doc, err = eng.codec.Doc(&view, places.StoredMost); err != nil {
		err = state.Invalid(&wal.Entry{LSN: at}, err)
	}
	return v, err
}

// frame reads the record of a version and its line.
func (eng *engine) frame(ctx context.Context, k *kind, id string, at wal.LSN) (version, record.View, error) {
	e, err := eng.log.ReadAt(ctx, at)
	if err != nil {
		return version{}, record.View{}, err
	}
	if len(e.Key) == 0 || e.Key[0] != k.Letter || e.Key[1:] != id {
		return version{}, record.View{}, errMoved
	}
	line, view, err := state.LineIn(&e)
	if err != nil {
		return version{}, view, err
	}
	return version{lsn: at, line: line}, view, nil
}

func (eng *engine) durableNow(ctx context.Context) (uint64, error) {
	if err := eng.begun(); err != nil {
		return 0, err
	}
	defer eng.ended()
	err := eng.sight(ctx)
	return eng.log.Durable(), err
}

// noVersion says of the error of reading the version that an entry names as the one
// before it that there is none: something else is at that position, or nothing sound.
func noVersion(err error) bool { return errors.Is(err, errMoved) || errors.Is(err, errs.ErrCorrupt) }
