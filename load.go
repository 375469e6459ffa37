package varve

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/internal/document"
	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/wal"
)

// cached is a document in the cache. It counts as long as nothing was applied
// to its key and the index was not replaced since; else the index is asked.
type cached struct {
	kind    *kind
	lsn     wal.LSN
	doc     []byte
	expires time.Time
	created time.Time
	updated time.Time
	vector  int64
	session string
	size    int64
	swaps   uint64
}

func (eng *engine) get(ctx context.Context, k *kind, id string) (version, error) {
	if err := eng.begun(); err != nil {
		return version{}, err
	}
	defer eng.ended()
	if err := ctx.Err(); err != nil {
		return version{}, err
	}
	v, err := eng.load(ctx, k, id)
	if err == nil && v.expired(eng.env.Clock()) {
		err = errs.ErrNotFound
	}
	if err != nil {
		return v, fmt.Errorf("%s %s: %w", k.Noun, errs.Quote(id), err)
	}
	return v, nil
}

// load returns the newest version with its document, from the cache if it is there.
// The document is shared and not to be changed.
func (eng *engine) load(ctx context.Context, k *kind, id string) (version, error) {
	if eng.cache == nil {
		return eng.find(ctx, k, id, true)
	}
	if c, ok := eng.cache.GetIfPresent(k.cacheKey(id)); ok && c.kind == k {
		if err := eng.sight(ctx); err != nil {
			return version{}, err
		}
		if !eng.state.Changed(k.Letter, id, c.lsn, c.swaps) {
			v := version{lsn: c.lsn, doc: c.doc}
			v.line.ExpiresAt, v.line.CreatedAt, v.line.UpdatedAt = c.expires, c.created, c.updated
			v.line.Version, v.line.VectorID = c.lsn, c.vector
			v.line.SessionID, v.line.Size = c.session, c.size
			return v, nil
		}
	}
	swaps := eng.state.Swaps()
	v, err := eng.find(ctx, k, id, true)
	if err != nil {
		return v, err
	}
	if int64(len(v.doc)) < eng.cacheBytes/4 {
		eng.cache.Set(k.cacheKey(id), &cached{kind: k, lsn: v.lsn, doc: v.doc, expires: v.line.ExpiresAt, created: v.line.CreatedAt, updated: v.line.UpdatedAt, vector: v.line.VectorNumber(),
			session: v.line.SessionID, size: int64(len(v.doc)), swaps: swaps})
	}
	return v, nil
}

func (eng *engine) decode(id string, v version) (memstore.Memory, error) {
	m, err := memstore.Decode(v.doc, memstore.DecodeOptions{Limits: document.Stored, Location: eng.env.NaiveTimes, ID: id})
	if err != nil {
		return memstore.Memory{}, eng.undecoded(eng.kinds.memories, id, v.lsn, err)
	}
	m.Version = v.lsn
	return *m, nil
}

// undecoded is the error of a version that is stored as it was written, and is no
// document of that id: no input that was refused, but damage.
func (eng *engine) undecoded(k *kind, id string, at wal.LSN, err error) error {
	if errors.Is(err, errs.ErrNewerFormat) {
		return fmt.Errorf("%s %s, version %d: %w", k.Noun, errs.Quote(id), at, err)
	}
	return fmt.Errorf("%s %s, version %d: %w", k.Noun, errs.Quote(id), at, &errs.CorruptionError{Path: k.File(id), LSN: at, Offset: -1, Err: err})
}

func (eng *engine) decodeAssembly(id string, v version) (assembly.Assembly, error) {
	a, err := assembly.Decode(v.doc, assembly.DecodeOptions{Limits: document.StoredAssembly, Location: eng.env.NaiveTimes, ID: id})
	if err != nil {
		return assembly.Assembly{}, eng.undecoded(eng.kinds.assemblies, id, v.lsn, err)
	}
	a.Version = v.lsn
	return *a, nil
}
