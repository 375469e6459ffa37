package vector

import (
	"context"
	"sync"
	"sync/atomic"
)

// chunkBytes is the approximate number of bytes that one worker hashes and then compares at a time. It is so small that
// the data is still in the processor's cache when it is compared.
const chunkBytes = 256 << 10

// scan returns the best k rows of level i, the base or the delta. It omits the rows that the delta or the overlay
// replaces or deletes.
func (s *search) scan(ctx context.Context, i, k int) ([]candidate, error) {
	l := s.v.set.levels[i]
	if l == nil {
		return nil, nil
	}
	w := scanner{s: s, l: l, level: i, to: l.end(s.q.Kind), step: max(1, chunkBytes/l.f.rowSize())}
	w.next.Store(l.first[s.q.Kind])
	n := int((w.to - w.next.Load() + w.step - 1) / w.step)
	workers := max(1, min(s.q.Workers, n))
	tops := make([]top, workers)
	for j := range tops {
		tops[j].k = k
	}
	if workers == 1 {
		w.run(ctx, &tops[0])
	} else {
		var wg sync.WaitGroup
		for j := range tops {
			wg.Go(func() { w.run(ctx, &tops[j]) })
		}
		wg.Wait()
	}
	if err := w.err.Load(); err != nil {
		return nil, *err
	}
	return best(k, tops), nil
}

// scanner is the state of the scan of one FAISS file for a search. The workers share it.
type scanner struct {
	s     *search
	l     *level
	level int
	to    int64
	step  int64
	next  atomic.Int64
	err   atomic.Pointer[error]
}

// run is the work of one goroutine of the scan. It takes one chunk of rows after another and compares the rows with
// the query until no chunk is left. It collects the best rows in t.
func (w *scanner) run(ctx context.Context, t *top) {
	out := make([]float32, w.step)
	for w.err.Load() == nil {
		from := w.next.Add(w.step) - w.step
		if from >= w.to {
			return
		}
		err := ctx.Err()
		if err == nil {
			to := min(from+w.step, w.to)
			err = w.l.f.guard(func() error { return w.chunk(from, to, out[:to-from], t) })
		}
		if err != nil {
			w.err.CompareAndSwap(nil, &err)
			return
		}
	}
}

// chunk compares the query with the rows [from, to), and adds the best rows to t. Call it only in a function that guard
// runs.
func (w *scanner) chunk(from, to int64, out []float32, t *top) error {
	f := w.l.f
	if err := f.touchRows(from, to); err != nil {
		return err
	}
	rows := f.bytes(from, to)
	w.s.kernel(w.s.vector, rows, out)
	var below bitmap
	if w.level == base {
		below = w.s.v.set.hidden
	}
	over := w.s.v.hidden[w.level]
	size := f.rowSize()
	for i, x := range out {
		c := candidate{w.s.value(x), from + int64(i)}
		if !t.wants(c) || below.has(c.row) || over.has(c.row) || zero(rows[int64(i)*size:int64(i+1)*size]) {
			continue
		}
		t.add(c)
	}
	return nil
}
