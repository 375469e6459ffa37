package varve

import (
	"bytes"
	"context"
	"errors"

	"github.com/varve-db/varve/vector"
)

// VectorReport compares vectors with memories.
type VectorReport struct {
	Vectors   int64    // of memories
	Dimension int      // 0 while there is none
	Missing   []string // memories whose embedding has no vector, the first of them
	Stale     []string // memories whose vector is another one's, or an older one
	Ghosts    []string // vectors without a memory
	Misfits   []string // memories whose embedding has another dimension: they have no vector
	Unread    []string // memories that cannot be read
	counts    [3]int
}

// Drift is how many memories and vectors do not agree.
func (r *VectorReport) Drift() int { return r.counts[0] + r.counts[1] + r.counts[2] }

// mostListed is how many ids a report lists of each sort.
const mostListed = 1000

func listID(list []string, id string) []string {
	if len(list) == mostListed {
		return list
	}
	return append(list, id)
}

// CheckVectors compares every memory's embedding with its vector, bit by bit. It
// reads every memory.
func (st *Store) CheckVectors(ctx context.Context) (VectorReport, error) {
	var r VectorReport
	if err := st.begun(); err != nil {
		return r, err
	}
	defer st.ended()
	view, err := st.vectorView(ctx)
	if err != nil {
		return r, err
	}
	defer func() { _ = view.Release() }()
	r.Vectors, r.Dimension = view.Count(vector.Memories), view.Dim()
	metric := view.Metric()
	var row, want []byte
	rows := int64(0)
	for m, err := range st.Memories(ctx) {
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, ErrClosed) {
				return r, err
			}
			r.Unread = listID(r.Unread, err.Error())
			continue
		}
		var has bool
		if row, _, has, err = view.Row(row[:0], vector.Memories, m.ID); err != nil {
			return r, err
		}
		if has {
			rows++
		}
		switch n := len(m.Embedding); {
		case n == 0 && !has:
		case n == 0:
			r.Ghosts = listID(r.Ghosts, m.ID)
			r.counts[2]++
		case n != r.Dimension && !has:
			r.Misfits = listID(r.Misfits, m.ID)
		case !has:
			r.Missing = listID(r.Missing, m.ID)
			r.counts[0]++
		default:
			if want = metric.Row(want[:0], m.Embedding); !bytes.Equal(want, row) {
				r.Stale = listID(r.Stale, m.ID)
				r.counts[1]++
			}
		}
	}
	if err := ctx.Err(); err != nil {
		return r, err
	}
	if rows < r.Vectors { // what expired counts as well
		err = view.Walk(vector.Memories, func(id string) error {
			_, err := st.find(ctx, st.memories, id, false)
			if errors.Is(err, ErrNotFound) {
				r.Ghosts = listID(r.Ghosts, id)
				r.counts[2]++
				return nil
			}
			return err
		})
	}
	return r, err
}
