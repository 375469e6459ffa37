package engine

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal"
)

// Version is one version of a document: its index line, and its content once the content is read.
type Version struct {
	LSN  wal.LSN
	Line index.Entry
	Doc  []byte
}

// Expired reports whether the version has expired at the time now.
func (v *Version) Expired(now time.Time) bool {
	return !v.Line.ExpiresAt.IsZero() && !now.Before(v.Line.ExpiresAt)
}

// Stale reports whether v has expired or no longer matches f. The caller has chosen the document by its index line and
// then read v, which may be a newer version, for example in another session.
func (v *Version) Stale(f *Filters, id string, now time.Time) bool {
	return v.Expired(now) || !f.Line(id, &v.Line, now)
}

// FindTries is the maximum number of attempts of a look-up. A look-up starts again if the version that it found is
// replaced, flushed or released before the look-up reads it. So each new attempt means that another process has made
// progress.
const FindTries = 100

// Find returns the newest durable version of a document, with its content if doc is true. It returns errs.ErrNotFound
// if the document does not exist.
func (eng *Engine) Find(ctx context.Context, k *Kind, id string, doc bool) (Version, error) {
	var last error
	for range FindTries {
		if err := eng.CatchUp(ctx); err != nil {
			return Version{}, err
		}
		seen, swaps := eng.log.Applied(), eng.state.Swaps()
		place, err := eng.state.Find(k.Letter, id)
		if eng.log.Applied() < seen {
			continue // this process has started over with newer views
		}
		if err != nil {
			if errors.Is(err, errs.ErrCorrupt) && eng.Healed(swaps) {
				last = err
				continue
			}
			return Version{}, eng.beyondDamage(eng.DamageOf(err))
		}
		v, err := eng.Read(ctx, k, id, place, doc)
		switch {
		case err == nil:
			return v, nil
		case errors.Is(err, errs.ErrTruncated), errors.Is(err, ErrMoved):
			if rerr := eng.Refresh(); rerr != nil {
				err = rerr
			}
		case errors.Is(err, ErrMismatch):
			if !eng.changed(k, id, place) {
				return eng.host.JudgeEdit(ctx, k, id)
			}
		default:
			return Version{}, err
		}
		last = err
	}
	return Version{}, fmt.Errorf("reading %s %s: gave up, because the document keeps changing: %w", k.Noun,
		human.Quote(id), last)
}

// DamageOf returns the error to report for err, an error of reading the index. If err means damage, DamageOf schedules
// an index rebuild at the next flush. But if the store's folder was replaced while the store was open, DamageOf returns
// an error that says so, and schedules nothing: a program that copies files over mapped files truncates the mapped
// files, which looks like damage of the store.
func (eng *Engine) DamageOf(err error) error {
	err = eng.orReplaced(err)
	if errors.Is(err, errs.ErrCorrupt) && eng.damaged.CompareAndSwap(false, true) {
		eng.host.FlushDue()
	}
	return err
}

// orReplaced returns err. But if err is damage and the store's folder was replaced while the store was open, it returns
// an error that says so.
func (eng *Engine) orReplaced(err error) error {
	if errors.Is(err, errs.ErrCorrupt) {
		if replaced := eng.log.Folder().InPlace(); replaced != nil {
			return replaced
		}
	}
	return err
}

// Containing returns the assemblies that contain a memory, and the highest version of these assemblies, for
// preconditions.
func (eng *Engine) Containing(id string) ([]string, wal.LSN, error) {
	assemblies, newest, err := eng.state.Containing(id)
	if err != nil {
		return nil, 0, fmt.Errorf("finding the assemblies of memory %s: %w", human.Quote(id), eng.DamageOf(err))
	}
	return assemblies, newest, nil
}

// Settled reads the newest version of a document and does not adopt an edit of its file. It is for the holder of
// flush.lock, and for goroutines for which the holder may wait: neither may adopt edits. If the file differs from the
// version, Settled reads the version from the log or the archive; if neither has it any more, the error is ErrCorrupt.
func (eng *Engine) Settled(ctx context.Context, k *Kind, id string) (Version, error) {
	place, err := eng.state.Find(k.Letter, id)
	if err != nil {
		return Version{}, eng.beyondDamage(err)
	}
	v, err := eng.Read(ctx, k, id, place, true)
	if err == nil {
		return v, nil
	}
	if v, ok := eng.FromLog(ctx, k, id, place.Version); ok {
		return v, nil
	}
	if errors.Is(err, ErrMismatch) && !vfs.IsPermission(err) {
		err = errors.Join(errs.ErrCorrupt, err)
	}
	return v, err
}

// beyondDamage returns err. But if err is errs.ErrNotFound and the log is damaged, it returns the error that describes
// the damage, because the document may be in the damaged part of the log.
func (eng *Engine) beyondDamage(err error) error {
	if d := eng.log.Damage(); d != nil && errors.Is(err, errs.ErrNotFound) {
		return d
	}
	return err
}

func (eng *Engine) changed(k *Kind, id string, prev state.Place) bool {
	if err := eng.log.CatchUp(context.Background()); err != nil {
		return false
	}
	now, err := eng.state.Find(k.Letter, id)
	return err != nil || now.Version != prev.Version
}

// Errors of a read that finds something other than the expected version of a document.
var (
	ErrMismatch = errors.New("the file does not contain the version that the index names")
	ErrMoved    = errors.New("the log has an entry of another document at this position")
)

// glanceMost is the maximum size in bytes of a document that the method Read reads with docfile's Glance, which needs
// the fewest system calls.
const glanceMost = 1 << 20

// Read reads the version of a document that place describes, from the log or from the document's file. It reads the
// content only if doc is true. If the file does not contain that version, the error is ErrMismatch.
func (eng *Engine) Read(ctx context.Context, k *Kind, id string, place state.Place, doc bool) (Version, error) {
	if place.InLog {
		return eng.readLog(ctx, k, id, place.Version, doc)
	}
	v := Version{LSN: place.Version, Line: place.Entry}
	if !doc {
		return v, nil
	}
	name := k.FileName(id)
	// The hash makes the checks of the path unnecessary that docfile's Read does.
	if n := v.Line.Size; n > 0 && n <= glanceMost {
		data, info, err := k.Glance(name, make([]byte, n), n)
		if err == nil && Matches(&v.Line, info) && sha256.Sum256(data) == v.Line.ContentHash {
			v.Doc = data
			return v, nil
		}
	}
	data, info, err := k.Read(name, places.StoredMost)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errs.ErrCorrupt) || NotOurs(err) || vfs.IsPermission(err) {
			return v, fmt.Errorf("%w: %w", ErrMismatch, err)
		}
		return v, eng.env.IOError("reading", k.Path(k.FileName(id)), err)
	}
	if !Matches(&v.Line, info) || sha256.Sum256(data) != v.Line.ContentHash {
		return v, ErrMismatch
	}
	v.Doc = data
	return v, nil
}

// NotOurs reports whether an error of reading a document means that something that cannot be a document is at its path:
// a folder, a link, or a file larger than any document.
func NotOurs(err error) bool {
	return errors.Is(err, errs.ErrInvalid) || errors.Is(err, errs.ErrTooLarge)
}

// readLog reads a version of a document from its frame in the log at position pos. It reads the content only if
// doc is true. If it reads the content of a version below the position Flushed, the document's file must have the
// size and time of that version. Otherwise the file was edited by hand, and the error is ErrMismatch.
func (eng *Engine) readLog(ctx context.Context, k *Kind, id string, pos wal.LSN, doc bool) (Version, error) {
	v, view, err := eng.Frame(ctx, k, id, pos)
	if err != nil || !doc {
		return v, err
	}
	if pos < eng.log.Flushed() {
		info, err := k.Stat(k.FileName(id))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return v, eng.env.IOError("checking", k.Path(k.FileName(id)), err)
		}
		if err != nil || !Matches(&v.Line, info) {
			return v, ErrMismatch
		}
	}
	if v.Doc, err = eng.codec.Doc(&view, places.StoredMost); err != nil {
		err = state.Invalid(&wal.Entry{LSN: pos}, err)
	}
	return v, err
}

// Frame reads the record and the index line of a version from the log. pos is the position of the version. If the
// log has an entry of another key at pos, the error is ErrMoved.
func (eng *Engine) Frame(ctx context.Context, k *Kind, id string, pos wal.LSN) (Version, record.View, error) {
	e, err := eng.log.ReadAt(ctx, pos)
	if err != nil {
		return Version{}, record.View{}, err
	}
	if len(e.Key) == 0 || e.Key[0] != k.Letter || e.Key[1:] != id {
		return Version{}, record.View{}, ErrMoved
	}
	line, view, err := state.LineIn(&e)
	if err != nil {
		return Version{}, view, err
	}
	return Version{LSN: pos, Line: line}, view, nil
}

// DurableNow returns the position up to which the log is durable now, including entries of other processes. When it
// returns, the state has all entries before that position.
func (eng *Engine) DurableNow(ctx context.Context) (uint64, error) {
	if err := eng.BeginUse(); err != nil {
		return 0, err
	}
	defer eng.EndUse()
	if err := eng.CatchUp(ctx); err != nil { // entries of other processes become durable here
		return eng.log.Durable(), err
	}
	to := eng.log.Durable()
	return to, eng.CatchUp(ctx) // an entry is durable before it is in the state
}

// NoVersion reports whether an error of reading the predecessor of an entry means that this version does not exist: the
// log has an entry of another key at the position, or no valid entry.
func NoVersion(err error) bool { return errors.Is(err, ErrMoved) || errors.Is(err, errs.ErrCorrupt) }
