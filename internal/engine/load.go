package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/document"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/wal"
)

// Cached is a document in the cache. It counts as long as nothing was applied
// to its key and the index was not replaced since; else the index is asked.
type Cached struct {
	kind    *Kind
	lsn     wal.LSN
	Doc     []byte
	expires time.Time
	created time.Time
	updated time.Time
	vector  int64
	session string
	size    int64
	swaps   uint64
}

// Get reads a document, from the cache where it is there.
func (eng *Engine) Get(ctx context.Context, k *Kind, id string) (Version, error) {
	if err := eng.Begun(); err != nil {
		return Version{}, err
	}
	defer eng.Ended()
	if err := ctx.Err(); err != nil {
		return Version{}, err
	}
	v, err := eng.Load(ctx, k, id)
	if err == nil && v.Expired(eng.Env.Clock()) {
		err = errs.ErrNotFound
	}
	if err != nil {
		return v, fmt.Errorf("%s %s: %w", k.Noun, human.Quote(id), err)
	}
	return v, nil
}

// Load returns the newest version with its document, from the cache if it is there.
// The document is shared and not to be changed.
func (eng *Engine) Load(ctx context.Context, k *Kind, id string) (Version, error) {
	if eng.Cache == nil {
		return eng.Find(ctx, k, id, true)
	}
	if c, ok := eng.Cache.GetIfPresent(k.CacheKey(id)); ok && c.kind == k {
		if err := eng.Sight(ctx); err != nil {
			return Version{}, err
		}
		if !eng.State.Changed(k.Letter, id, c.lsn, c.swaps) {
			v := Version{LSN: c.lsn, Doc: c.Doc}
			v.Line.ExpiresAt, v.Line.CreatedAt, v.Line.UpdatedAt = c.expires, c.created, c.updated
			v.Line.Version, v.Line.VectorID = c.lsn, c.vector
			v.Line.SessionID, v.Line.Size = c.session, c.size
			return v, nil
		}
	}
	swaps := eng.State.Swaps()
	v, err := eng.Find(ctx, k, id, true)
	if err != nil {
		return v, err
	}
	if int64(len(v.Doc)) < eng.CacheBytes/4 {
		eng.Cache.Set(k.CacheKey(id), &Cached{kind: k, lsn: v.LSN, Doc: v.Doc, expires: v.Line.ExpiresAt, created: v.Line.CreatedAt, updated: v.Line.UpdatedAt, vector: v.Line.VectorNumber(),
			session: v.Line.SessionID, size: int64(len(v.Doc)), swaps: swaps})
	}
	return v, nil
}

// Decode makes a memory of a version.
func (eng *Engine) Decode(id string, v Version) (memstore.Memory, error) {
	m, err := memstore.Decode(v.Doc, memstore.DecodeOptions{Limits: document.Stored, Location: eng.Env.NaiveTimes, ID: id})
	if err != nil {
		return memstore.Memory{}, eng.undecoded(eng.Kinds.Memories, id, v.LSN, err)
	}
	m.Version = v.LSN
	v.times(&m.CreatedAt, &m.UpdatedAt)
	return *m, nil
}

// times are those of a version whose document does not say them: an edit by hand is adopted as its
// file is, and its times are those of the adoption.
func (v *Version) times(created, updated *time.Time) {
	if v.Line.UpdatedAt.IsZero() || v.Line.UpdatedAt.Equal(*updated) && v.Line.CreatedAt.Equal(*created) {
		return
	}
	*created, *updated = v.Line.CreatedAt, v.Line.UpdatedAt
}

// undecoded is the error of a version that is stored as it was written, and is no
// document of that id: no input that was refused, but damage.
func (eng *Engine) undecoded(k *Kind, id string, at wal.LSN, err error) error {
	if errors.Is(err, errs.ErrNewerFormat) {
		return fmt.Errorf("%s %s, version %d: %w", k.Noun, human.Quote(id), at, err)
	}
	return fmt.Errorf("%s %s, version %d: %w", k.Noun, human.Quote(id), at, &errs.CorruptionError{Path: k.File(id), LSN: at, Offset: -1, Err: err})
}

// DecodeAssembly makes an assembly of a version.
func (eng *Engine) DecodeAssembly(id string, v Version) (assembly.Assembly, error) {
	a, err := assembly.Decode(v.Doc, assembly.DecodeOptions{Limits: document.StoredAssembly, Location: eng.Env.NaiveTimes, ID: id})
	if err != nil {
		return assembly.Assembly{}, eng.undecoded(eng.Kinds.Assemblies, id, v.LSN, err)
	}
	a.Version = v.LSN
	v.times(&a.CreatedAt, &a.UpdatedAt)
	return *a, nil
}
