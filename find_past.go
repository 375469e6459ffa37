package varve

import (
	"context"
	"crypto/sha256"
	"errors"

	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/wal"
)

// fromLog reads a version from the log or its archive, if they still reach back so far.
func (eng *engine) fromLog(ctx context.Context, k *kind, id string, at wal.LSN) (version, bool) {
	v, view, err := eng.frame(ctx, k, id, at)
	if errors.Is(err, errs.ErrTruncated) {
		return eng.fromArchive(ctx, k, id, at)
	}
	if err != nil || v.line.Deleted {
		return version{}, false
	}
	v.doc, err = eng.codec.Doc(&view, places.StoredMost)
	return v, err == nil
}

// fromArchive reads a version that the log no longer has.
func (eng *engine) fromArchive(ctx context.Context, k *kind, id string, at wal.LSN) (version, bool) {
	e, err := eng.log.Past().At(ctx, at, eng.log.Durable())
	if err != nil || e.Key != k.Key(id) || e.Delete {
		return version{}, false
	}
	line, view, err := state.LineIn(&e)
	if err != nil {
		return version{}, false
	}
	doc, err := eng.codec.Doc(&view, places.StoredMost)
	return version{lsn: at, doc: doc, line: line}, err == nil && sha256.Sum256(doc) == line.ContentHash
}
