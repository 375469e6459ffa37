package engine

import (
	"context"
	"crypto/sha256"
	"errors"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/wal"
)

// FromLog reads the version at position pos from the log or its archive. It returns false if neither of them has
// the version any more, if the version is a deletion, or if it cannot be read.
func (eng *Engine) FromLog(ctx context.Context, k *Kind, id string, pos wal.LSN) (Version, bool) {
	v, view, err := eng.Frame(ctx, k, id, pos)
	if errors.Is(err, errs.ErrTruncated) {
		return eng.fromArchive(ctx, k, id, pos)
	}
	if err != nil || v.Line.Deleted {
		return Version{}, false
	}
	v.Doc, err = eng.codec.Doc(&view, places.StoredMost)
	return v, err == nil
}

// fromArchive reads from the archive the version at position pos, which the log no longer has. It returns false if
// the archive has no such version of the document, if the version is a deletion, or if its content does not match
// its hash.
func (eng *Engine) fromArchive(ctx context.Context, k *Kind, id string, pos wal.LSN) (Version, bool) {
	e, err := eng.log.Past().At(ctx, pos, eng.log.Durable())
	if err != nil || e.Key != k.Key(id) || e.Delete {
		return Version{}, false
	}
	line, view, err := state.LineIn(&e)
	if err != nil {
		return Version{}, false
	}
	doc, err := eng.codec.Doc(&view, places.StoredMost)
	return Version{LSN: pos, Doc: doc, Line: line}, err == nil && sha256.Sum256(doc) == line.ContentHash
}
