package varve

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/varve-db/varve/errs"
)

// Limits of one chunk of PutAll. A chunk ends at whichever is reached first.
const (
	putAllCount = 1000
	putAllBytes = 4 << 20
)

// PutAll stores any number of memories without holding all of them in memory. It writes chunks of at most 1,000
// memories or 4 MiB (or half of what one commit may take), each completely or not at all. It returns the number of
// stored memories; after an error, the stored memories are the first ones of the sequence. If a memory is refused, all
// memories before it are stored, so the returned number is its index in the sequence. The error is then a *BatchError,
// whose Index counts only within the last write.
func (st *Store) PutAll(ctx context.Context, memories iter.Seq[Memory], options ...PutOption) (int64, error) {
	limit := min(int64(putAllBytes), int64(st.inner.Engine.Log().Limit())/2)
	var done int64
	var size int64
	b := new(Batch)
	write := func() error {
		if b.Len() == 0 {
			return nil
		}
		n, err := st.applyChunk(ctx, b)
		done += int64(n)
		b, size = new(Batch), 0
		return err
	}
	for m := range memories {
		n := sizeGuess(&m)
		if b.Len() > 0 && (b.Len() >= putAllCount || size+n > limit) {
			if err := write(); err != nil {
				return done, err
			}
		}
		b.Put(m, options...)
		size += n
	}
	return done, write()
}

// applyChunk writes a chunk and returns the number of stored memories. If one memory is refused, the memories before it
// in the chunk are still written. If the chunk is larger than estimated and does not fit into one commit, it is written
// in two halves.
func (st *Store) applyChunk(ctx context.Context, b *Batch) (int, error) {
	err := st.Apply(ctx, b)
	var be *errs.BatchError
	switch {
	case err == nil:
		return b.Len(), nil
	case errors.Is(err, errs.ErrBatchTooLarge) && b.Len() > 1:
		half := b.Len() / 2
		n, err := st.applyChunk(ctx, &Batch{ops: b.ops[:half]})
		if err != nil {
			return n, err
		}
		m, err := st.applyChunk(ctx, &Batch{ops: b.ops[half:]})
		return n + m, err
	case errors.As(err, &be) && be.Index > 0:
		n, err2 := st.applyChunk(ctx, &Batch{ops: b.ops[:be.Index]})
		if err2 != nil {
			return n, err2
		}
		return n, err
	}
	return 0, err
}

// sizeGuess returns an estimate of the bytes that a memory needs in the log.
func sizeGuess(m *Memory) int64 {
	n := int64(len(m.ID)+len(m.Content)) + 24*int64(len(m.Embedding)+len(m.HyperbolicEmbedding)) + 1024
	for k, v := range m.Metadata {
		n += int64(len(k) + len(fmt.Sprint(v)) + 16)
	}
	return n
}
