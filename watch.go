package varve

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/wal"
)

// Change is one committed change of one memory or one assembly, by whatever process.
type Change struct {
	LSN      uint64    // the version that it made; the changes of a batch have rising ones
	Next     uint64    // where to go on: Watch(ctx, Next)
	Time     time.Time // of the commit
	Kind     string    // "memory" or "assembly"
	ID       string
	Deleted  bool
	Memory   Memory   // as it was written; zero when deleted
	Assembly Assembly // likewise
	More     bool     // the batch goes on in the next change
}

// Watch yields every change from a position on, in the order of their commits,
// and then waits for more until ctx ends or the loop is left. It starts with
// Stats().Durable for what is to come, or 0 for as far back as the log reaches.
// Once the log has moved on past a reader, the error is a *TruncatedError that
// names the oldest position: list the memories, then watch from there. The store
// must not be closed from within the loop.
func (st *Store) Watch(ctx context.Context, from uint64) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		if from == 0 {
			if err := st.begun(); err != nil {
				yield(Change{}, err)
				return
			}
			from = st.log.Spilled()
			st.ended()
		}
		for {
			next, done := st.watchOnce(ctx, from, yield)
			if done {
				return
			}
			if next == from {
				if err := st.awaitBeyond(ctx, from); err != nil {
					yield(Change{}, err)
					return
				}
			}
			from = next
		}
	}
}

// The pauses between two looks at what other processes have committed.
const (
	watchFirst = time.Millisecond
	watchMost  = 50 * time.Millisecond
)

// awaitBeyond returns once the log is durable beyond a position. Between two
// looks the store may be closed.
func (st *Store) awaitBeyond(ctx context.Context, from uint64) error {
	for pause := watchFirst; ; pause = min(2*pause, watchMost) {
		if err := st.begun(); err != nil {
			return err
		}
		err := st.movedSince()
		if err == nil {
			err = st.log.CatchUp(ctx)
		}
		durable := st.log.Durable()
		st.ended()
		if err != nil || durable > from {
			return err
		}
		if err := st.sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// watchOnce yields what is durable by now and returns where to go on.
func (st *Store) watchOnce(ctx context.Context, from uint64, yield func(Change, error) bool) (next uint64, done bool) {
	if err := st.begun(); err != nil {
		yield(Change{}, err)
		return from, true
	}
	defer st.ended()
	durable := st.log.Durable()
	for e, err := range st.log.Scan(ctx, from) {
		if err != nil {
			var damaged *CorruptionError
			if errors.As(err, &damaged) && from < st.log.Spilled() {
				err = &TruncatedError{Oldest: st.log.Spilled()}
			}
			yield(Change{}, err)
			return from, true
		}
		next = e.LSN + e.Size
		k := st.kindOf(e.Key)
		if k == nil {
			continue
		}
		c, err := st.changeOf(k, e)
		if !yield(c, err) || ctx.Err() != nil {
			return next, true
		}
	}
	return max(from, durable, next), false
}

func (st *Store) changeOf(k *kind, e wal.Entry) (Change, error) {
	c := Change{Kind: k.noun, LSN: e.LSN, Next: e.LSN + e.Size, Time: e.Time, ID: e.Key[1:], Deleted: e.Delete, More: e.More}
	if e.Delete {
		return c, nil
	}
	view, err := record.Parse(e.Value)
	if err != nil {
		return c, fmt.Errorf("entry %d: %w", e.LSN, err)
	}
	doc, err := st.codec.Doc(&view, fileLimit)
	if err != nil {
		return c, fmt.Errorf("entry %d: %w", e.LSN, err)
	}
	v := version{lsn: e.LSN, doc: doc}
	if k == st.assemblies {
		c.Assembly, err = st.decodeAssembly(c.ID, v)
	} else {
		c.Memory, err = st.decode(c.ID, v)
	}
	return c, err
}
