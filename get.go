package varve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

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

// Get returns a memory, or ErrNotFound; with InSession ErrSession when it is not of
// that session. It never writes; see Touch.
func (st *Store) Get(ctx context.Context, id string, in ...SessionOption) (Memory, error) {
	v, err := st.get(ctx, st.kinds.memories, id)
	if err != nil {
		return Memory{}, err
	}
	if err := admits(sessionOf(in), v.line.SessionID); err != nil {
		return Memory{}, fmt.Errorf("memory %s: %w", quote(id), err)
	}
	return st.decode(id, v)
}

// GetRaw returns the exact bytes of a memory's file, or what they will be once
// it is flushed.
func (st *Store) GetRaw(ctx context.Context, id string) ([]byte, error) {
	v, err := st.get(ctx, st.kinds.memories, id)
	if err != nil {
		return nil, err
	}
	return bytes.Clone(v.doc), nil
}

// GetMany returns several memories in the order of their ids. The errors of
// those that cannot be had are *BatchError, joined; the others are there.
func (st *Store) GetMany(ctx context.Context, ids ...string) ([]Memory, error) {
	all := make([]Memory, len(ids))
	var failed []error
	for i, id := range ids {
		m, err := st.Get(ctx, id)
		if err != nil {
			if errors.Is(err, errs.ErrClosed) || ctx.Err() != nil {
				return nil, err
			}
			failed = append(failed, &errs.BatchError{Index: i, Key: id, Err: err})
			continue
		}
		all[i] = m
	}
	return all, errors.Join(failed...)
}

func (st *Store) get(ctx context.Context, k *kind, id string) (version, error) {
	if err := st.begun(); err != nil {
		return version{}, err
	}
	defer st.ended()
	if err := ctx.Err(); err != nil {
		return version{}, err
	}
	v, err := st.load(ctx, k, id)
	if err == nil && v.expired(st.env.Clock()) {
		err = errs.ErrNotFound
	}
	if err != nil {
		return v, fmt.Errorf("%s %s: %w", k.noun, quote(id), err)
	}
	return v, nil
}

// load returns the newest version with its document, from the cache if it is there.
// The document is shared and not to be changed.
func (st *Store) load(ctx context.Context, k *kind, id string) (version, error) {
	if st.cache == nil {
		return st.find(ctx, k, id, true)
	}
	if c, ok := st.cache.GetIfPresent(k.cacheKey(id)); ok && c.kind == k {
		if err := st.sight(ctx); err != nil {
			return version{}, err
		}
		if !st.state.Changed(k.letter, id, c.lsn, c.swaps) {
			v := version{lsn: c.lsn, doc: c.doc}
			v.line.ExpiresAt, v.line.CreatedAt, v.line.UpdatedAt = c.expires, c.created, c.updated
			v.line.Version, v.line.VectorID = c.lsn, c.vector
			v.line.SessionID, v.line.Size = c.session, c.size
			return v, nil
		}
	}
	swaps := st.state.Swaps()
	v, err := st.find(ctx, k, id, true)
	if err != nil {
		return v, err
	}
	if int64(len(v.doc)) < st.o.CacheBytes/4 {
		st.cache.Set(k.cacheKey(id), &cached{kind: k, lsn: v.lsn, doc: v.doc, expires: v.line.ExpiresAt, created: v.line.CreatedAt, updated: v.line.UpdatedAt, vector: v.line.VectorNumber(),
			session: v.line.SessionID, size: int64(len(v.doc)), swaps: swaps})
	}
	return v, nil
}

func (st *Store) decode(id string, v version) (Memory, error) {
	m, err := memstore.Decode(v.doc, memstore.DecodeOptions{Limits: storedLimits, Location: st.env.NaiveTimes, ID: id})
	if err != nil {
		return Memory{}, st.undecoded(st.kinds.memories, id, v.lsn, err)
	}
	m.Version = v.lsn
	return *m, nil
}

// undecoded is the error of a version that is stored as it was written, and is no
// document of that id: no input that was refused, but damage.
func (st *Store) undecoded(k *kind, id string, at wal.LSN, err error) error {
	if errors.Is(err, errs.ErrNewerFormat) {
		return fmt.Errorf("%s %s, version %d: %w", k.noun, quote(id), at, err)
	}
	return fmt.Errorf("%s %s, version %d: %w", k.noun, quote(id), at, &errs.CorruptionError{Path: k.file(id), LSN: at, Offset: -1, Err: err})
}
