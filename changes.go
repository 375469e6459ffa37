package varve

import (
	"context"
	"iter"
)

// Changes yields what is committed from a position on, by whatever process, in the
// order of the commits, and ends with what is committed when it is called, where
// Watch waits for more. It is for those who keep something that follows from
// memories and bring it up to date when they are asked: begin with Stats().Durable,
// list, then go on from the last change's Next. Positions that come from elsewhere
// are not looked at; errors are those of Watch.
func (st *Store) Changes(ctx context.Context, from uint64) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		to, err := st.engine.DurableNow(ctx)
		for w := (&watcher{st: st, at: from}); err == nil && w.at < to; {
			w.list = w.list[:0]
			err = w.readMore(ctx)
			for _, e := range w.list {
				if !yield(st.changeOf(e)) {
					return
				}
			}
		}
		if err != nil {
			yield(Change{}, err)
		}
	}
}

// Alone holds the transaction to this moment: when anything at all is committed between
// here and its own commit, by whatever process, the function runs again. It is for those
// who decide by what they keep of the store (see Changes) and not by what tx reads; with
// many writers beside it a transaction may run often.
func (tx *Tx) Alone() error { return tx.tx.Alone() }
