package varve

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/meter"
)

// Get returns a memory. If no memory has this id, the error is ErrNotFound. With InSession, the error is ErrSession if
// the memory belongs to another session or to none. Get never writes; see Touch.
func (st *Store) Get(ctx context.Context, id string, options ...SessionOption) (Memory, error) {
	meters := st.inner.Engine.Env().Meters
	began := meters.Begin(meter.Get)
	v, err := st.inner.Engine.Get(ctx, st.inner.Engine.Kinds().Memories, id)
	meters.End(meter.Get, began, err != nil)
	if err != nil {
		return Memory{}, err
	}
	if err := commit.Admits(sessionOf(options), v.Line.SessionID); err != nil {
		return Memory{}, fmt.Errorf("memory %s: %w", human.Quote(id), err)
	}
	return st.inner.Engine.Decode(id, v)
}

// GetRaw returns the exact bytes of a memory's file. If the file does not have the newest version yet, GetRaw returns
// the bytes that the next flush will write.
func (ad Admin) GetRaw(ctx context.Context, id string) ([]byte, error) {
	v, err := ad.st.inner.Engine.Get(ctx, ad.st.inner.Engine.Kinds().Memories, id)
	if err != nil {
		return nil, err
	}
	return bytes.Clone(v.Doc), nil
}

// GetMany returns several memories, each at the index of its id in ids. If a memory cannot be returned, the element at
// this index is the zero Memory, and the error joins a *BatchError for each such memory. If the store is closed or ctx
// ends, GetMany returns nil and only this error.
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
