package flush

import (
	"context"
	"errors"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/wal"
)

// A document that is compressed more than 64-fold comes from an older version of this program, or from a forged log, in
// which a megabyte becomes gigabytes of files. The two cannot be told apart, so the number of bytes that a flush writes
// of such documents is bounded. If all such documents in the log together exceed the bound, none is written: the store
// serves them from its log until its user confirms that the documents are wanted (Options.Inflate), or deletes them.
// The setting is not in config.json, because that comes with the store.

// UnpackedMost is the maximum number of bytes of highly compressed data that may be written to files without
// confirmation. It counts documents and changes of working memory that are compressed more than 64-fold.
const UnpackedMost = 256 << 20

// unpacks returns nil if the document in the log entry at pos, which is compressed more than 64-fold, may be
// written to a file. Otherwise it returns an error with the reason.
func (f *filing) unpacks(ctx context.Context, pos wal.LSN) error {
	fl := f.fl
	if fl.inflate {
		return nil
	}
	fl.unpacking.Lock()
	defer fl.unpacking.Unlock()
	if pos < fl.unpacksTo {
		return nil
	}
	to := max(fl.engine.Log().AppliedMark().LSN, pos+1)
	over := &errs.InflatedError{Most: UnpackedMost}
	for _, change := range fl.engine.State().Changes(f.flushed, to) {
		e, err := fl.engine.Log().ReadAt(ctx, change.Pos)
		if errors.Is(err, errs.ErrCorrupt) || errors.Is(err, errs.ErrTruncated) {
			continue // it is handled separately
		}
		if err != nil {
			return err
		}
		view, err := state.Read(&e)
		if err != nil || fl.engine.Kinds().Of(e.Key) == nil || !view.Overpacked() ||
			fl.engine.Codec().Fits(&view, places.StoredMost) != nil {
			continue
		}
		over.Documents++
		over.Packed += int64(len(e.Value))
		over.Size += int64(view.Size())
	}
	if over.Size > over.Most {
		return over
	}
	fl.unpacksTo = to
	return nil
}
