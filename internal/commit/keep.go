package commit

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal"
)

// A version whose bytes are in neither the log nor its archive is only in its file: after a restore, a clone, or a
// repair of the log, and if it is older than everything in the archive. An entry that replaces or deletes it would
// destroy the last copy. So a copy goes into the log first, see package record.

// keptTogether is the maximum number of bytes of copies of replaced versions that go into the same batch as the
// entries that replace these versions, if the batch has room. Further copies go into earlier batches, so that the
// batch does not become too large. This is safe, because copies change nothing.
const keptTogether = 1 << 20

// predecessor is a version that an entry replaces or deletes.
type predecessor struct {
	key string
	at  wal.LSN
}

// keep returns additional entries for the batch that consists of entries: copies of the versions that the batch
// replaces and of which only document files still have the content. The history keeps these versions only if the
// copies are written before the batch, or first in it. If the copies do not fit into the batch, keep writes them
// itself, in batches of their own, and returns only those that it has not written. held is not nil if the caller holds
// flush.lock.
func (cm *Committer) keep(ctx context.Context, held *wal.Held, entries []wal.Entry) ([]wal.Entry, error) {
	var due []predecessor
	var reach *wal.Reach
	for i := range entries {
		e := &entries[i]
		at := record.Replaces(e.Value)
		if at == 0 || cm.engine.Kinds().Of(e.Key) == nil {
			continue
		}
		if reach == nil {
			reach = cm.engine.Log().Archive().Reach()
			defer reach.Close()
		}
		if !reach.Live(at) {
			due = append(due, predecessor{e.Key, at})
		}
	}
	if len(due) == 0 {
		return nil, nil
	}
	slices.SortFunc(due, func(a, b predecessor) int { return cmp.Compare(a.at, b.at) })
	var kept []wal.Entry
	limit := cm.engine.Log().Limit()
	most := min(keptTogether, limit)
	size, own := uint64(0), frames(entries)
	for _, p := range due {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if reach.Keeps(p.key, p.at) {
			continue
		}
		e, ok, err := cm.keepOne(p)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if err := cm.mayKeep(ctx, held); err != nil {
			return nil, err
		}
		one := frames([]wal.Entry{e})
		if one > limit || uint64(e.Inflated) > limit {
			return nil, oversized(cm.engine.Kinds().Of(p.key), p.key[1:], p.at, limit)
		}
		if size += one; len(kept) > 0 && size > most {
			if err := cm.keepFirst(ctx, kept); err != nil {
				return nil, err
			}
			kept, size = nil, one
		}
		kept = append(kept, e)
	}
	if len(kept) > 0 && size+own > limit {
		return nil, cm.keepFirst(ctx, kept)
	}
	return kept, nil
}

// keepFirst writes the entries with copies in a batch of their own.
func (cm *Committer) keepFirst(ctx context.Context, kept []wal.Entry) error {
	_, err := cm.engine.Append(ctx, &wal.Batch{Entries: kept})
	return unkept(err)
}

// frames returns the number of bytes that entries take in the log.
func frames(entries []wal.Entry) (n uint64) {
	for i := range entries {
		n += segment.FrameSize(uint64(len(entries[i].Key) + len(entries[i].Value)))
	}
	return n
}

// keepOne returns an entry with a copy of a version, read from its file. A file that is damaged, or that has another
// version, must not prevent the write: then ok is false and there is no copy. A file that cannot be read right now may
// be intact, and the write would destroy it: then keepOne returns an error.
func (cm *Committer) keepOne(p predecessor) (wal.Entry, bool, error) {
	k, id := cm.engine.Kinds().Of(p.key), p.key[1:]
	place, err := cm.engine.State().Find(k.Letter, id)
	if unread(err) {
		return wal.Entry{}, false, unreadable(k, id, p.at, err)
	}
	if err != nil || place.InLog || place.Version != p.at {
		return wal.Entry{}, false, nil // the precondition on the version will fail
	}
	doc, _, err := k.Read(k.FileName(id), places.StoredMost)
	if err == nil && sha256.Sum256(doc) != place.Entry.ContentHash {
		err = engine.ErrMismatch
	}
	var content engine.Parsed
	if err == nil {
		content, err = k.Parse(doc, id)
	}
	var line []byte
	if err == nil {
		content.Date(place.Entry.CreatedAt, place.Entry.UpdatedAt)
		line, err = content.Line(doc, place.Entry.VectorNumber())
	}
	if unread(err) {
		return wal.Entry{}, false, unreadable(k, id, p.at, err)
	}
	if err != nil {
		cm.engine.Env().Logger.Warn("the version that is replaced is in neither log nor archive, and its file cannot "+
			"be read: the history will lack this version", "kind", k.Noun, "id", id, "version", p.at, "err", err)
		return wal.Entry{}, false, nil
	}
	value, inflated := cm.engine.Codec().Encode(nil,
		&record.Record{Previous: p.at, Line: record.KeptLine(nil, place.Entry.Mtime, place.Entry.By, line), Doc: doc})
	return wal.Entry{Key: record.KeptKey(p.key), Kind: record.KindKept, Value: value, Inflated: inflated}, true, nil
}

// unread reports whether an error means that a document file could not be read now, because of the state of
// this process or of the disk. A link or a folder in place of the file is damage instead.
func unread(err error) bool {
	return vfs.IsStarved(err) || vfs.IsUnopened(err) || vfs.IsPermission(err) || errors.Is(err, syscall.EIO)
}

func unreadable(k *engine.Kind, id string, pos wal.LSN, err error) error {
	remedy := "retry when the file can be read; if the disk cannot read the file any more, move the file out of the " +
		"store"
	if vfs.IsPermission(err) {
		remedy = "retry when the file can be read, or remove the document without a copy: memctl purge ID"
	}
	return fmt.Errorf("%s %s: the only copy of version %d is the file of the document, which cannot be read now, so "+
		"the version is neither replaced nor deleted: %w; %s", k.Noun, human.Quote(id), pos, err, remedy)
}

// oversized returns the error for the version at position pos, whose file is too large to be copied in a commit of
// this log: a commit may have at most limit bytes. Such a file was not committed to this log, but restored or
// adopted.
func oversized(k *engine.Kind, id string, pos wal.LSN, limit uint64) error {
	return fmt.Errorf("%s %s: %w: the only copy of version %d is the file of the document, and a copy would exceed "+
		"the %d bytes that a commit may have in this log (half a segment); remove the document without a "+
		"copy: memctl purge %s",
		k.Noun, human.Quote(id), errs.ErrTooLarge, pos, limit, human.Quote(id))
}

// mayKeep ensures that every program that has the store open for writing knows entries with copies of
// versions: otherwise a purge by such a program would leave the copies.
func (cm *Committer) mayKeep(ctx context.Context, held *wal.Held) error {
	return cm.raise(ctx, held, wal.FeatureKept)
}

// raise ensures that every program that has the store open for writing knows the feature f. held is not nil if the
// caller holds flush.lock.
func (cm *Committer) raise(ctx context.Context, held *wal.Held, f wal.Features) error {
	log := cm.engine.Log()
	if log.Features()&f != 0 {
		return nil
	}
	if held == nil {
		return log.Raise(ctx, f)
	}
	ok, err := log.RaiseFlushing(held, f)
	if err == nil && !ok {
		err = &errs.LockError{Path: cm.engine.Env().Dir,
			Err: errors.New("a program of an older version has the store open, or programs are opening the store " +
				"now: retry, or end the program of the older version")}
	}
	return err
}

// unkept adds a remedy to the error that the disk has no room for a copy of a replaced version: to remove the document
// without a copy. It returns any other error, and nil, unchanged.
func unkept(err error) error {
	if !errors.Is(err, errs.ErrDiskFull) { // also if err is nil
		return err
	}
	return fmt.Errorf("%w; the only copy of the version that is replaced or deleted is the file of the document, and "+
		"the log has no room for another copy: make room, or remove the document without a copy: memctl purge ID", err)
}
