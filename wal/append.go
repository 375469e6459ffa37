package wal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

// groupLimit is the maximum size in bytes of one write of several batches. A single batch that is larger is written
// alone.
const groupLimit = 8 << 20

// groupEnough is the number of queued requests for which a write is worthwhile while another sync is running. If n
// requests wait for that sync and n/2 is smaller than groupEnough, n/2 queued requests suffice. Measured with 4
// processes of 16 goroutines each: 69,000 puts/s. If each process always waited for 16 requests, which it never has in
// its queue, the rate was only 63,000 puts/s. In one process with 64 goroutines, the number is always 16.
const groupEnough = 16

// request is a batch that was passed to Append, until the batch is written or refused.
type request struct {
	batch   *Batch
	size    uint64 // number of bytes that the batch needs in the log
	deletes bool   // the batch only deletes: it may use the reserved space
	since   time.Time

	gone bool // the goroutine of the request no longer waits; guarded by queue.mu
	preparing

	// Position after the batch. The leader that took the request sets it; it is read after wakeDone or
	// wakeSync was received.
	end  LSN // position that must be durable before the request is answered; 0: none
	err  error
	wake chan wake
}

// wake is a message to a goroutine that waits in Append. It tells the goroutine what to do next.
type wake int8

const (
	wakeDone wake = iota // the answer is ready
	wakeLead             // write the next group
	wakeSync             // the batch is written: make it durable
)

// queue has the requests of the goroutines that wait in Append. One of these goroutines, the leader, writes the
// requests of all.
type queue struct {
	mu      sync.Mutex
	waiting []*request
	leading bool
	closed  bool
	syncs   int           // syncs of this process that are running
	written int           // requests that wait for one of these syncs
	enough  chan struct{} // closed when the leader need not wait for more requests
}

// Append writes a batch and blocks until the batch is durable. It returns the LSN of the last entry, and sets LSN and
// Time of all entries of the batch. If ctx ends after the write, the error matches errs.ErrOutcomeUnknown.
func (l *FileLog) Append(ctx context.Context, b *Batch) (LSN, error) {
	r, err := l.request(b)
	if err != nil {
		return 0, err
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if l.exclusive(ctx) {
		return l.appendAlone(ctx, r)
	}
	lsn, err := l.enqueue(ctx, r)
	for errors.Is(err, errNoFields) { // nothing was written
		if err := l.raiseFields(ctx); err != nil {
			return 0, err
		}
		r.err, r.since = nil, l.o.Clock()
		lsn, err = l.enqueue(ctx, r)
	}
	if err == nil {
		// The request is answered, so no other goroutine has a reference. After an error a leader may still
		// have one.
		*r = request{wake: r.wake}
		l.requests.Put(r)
	}
	return lsn, err
}

// enqueue adds a request to the queue and blocks until the request is answered; see await.
func (l *FileLog) enqueue(ctx context.Context, r *request) (LSN, error) {
	lead, err := l.q.add(r)
	if err != nil {
		return 0, err
	}
	return l.await(ctx, r, lead)
}

func (l *FileLog) request(b *Batch) (*request, error) {
	if d := l.Damage(); d != nil {
		return nil, fmt.Errorf("%w: %w", errs.ErrReadOnly, d)
	}
	if l.o.ReadOnly {
		return nil, errs.ErrReadOnly
	}
	r, _ := l.requests.Get().(*request)
	if r == nil {
		r = &request{wake: make(chan wake, 1)}
	}
	r.batch, r.deletes, r.since = b, true, l.o.Clock()
	for i := range b.Entries {
		e := &b.Entries[i]
		if len(e.Key) == 0 || len(e.Key) > segment.MaxKey || e.Kind < past.KindUser {
			return nil, fmt.Errorf("entry %d of the batch: %w: invalid key or kind", i, errs.ErrInvalid)
		}
		r.size += segment.FrameSize(uint64(len(e.Key) + len(e.Value)))
		r.deletes = r.deletes && (e.Delete || b.Frees)
		if limit := l.Limit(); r.size > limit || uint64(e.Inflated) > limit {
			err := errs.ErrBatchTooLarge
			if len(b.Entries) == 1 {
				err = errs.ErrTooLarge
			}
			return nil,
				fmt.Errorf("%w: the batch exceeds %d bytes, the maximum for one commit (half a segment of the log): "+
					"split the batch", err, limit)
		}
	}
	return r, nil
}

// add queues a request. lead reports whether the goroutine of this request must write the next group.
func (q *queue) add(r *request) (lead bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false, errs.ErrClosed
	}
	r.gone = false
	q.waiting = append(q.waiting, r)
	if q.worthWhile() {
		q.release()
	}
	lead = !q.leading
	q.leading = true
	return lead, nil
}

// gather makes the leader wait before the next write. If a sync is running, the leader waits until enough requests are
// queued for a write to be worthwhile. If ctx ends first, gather returns the error of ctx.
func (q *queue) gather(ctx context.Context) error {
	q.mu.Lock()
	if q.syncs == 0 || q.worthWhile() {
		q.mu.Unlock()
		return nil
	}
	enough := make(chan struct{})
	q.enough = enough
	q.mu.Unlock()
	select {
	case <-enough:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// worthWhile reports whether enough requests are queued for the leader to write them. The caller holds mu.
func (q *queue) worthWhile() bool { return len(q.waiting) >= min(groupEnough, max(1, q.written/2)) }

// release lets the leader continue if it waits in gather for more requests. The caller holds mu.
func (q *queue) release() {
	if q.enough != nil {
		close(q.enough)
		q.enough = nil
	}
}

// syncBegins records that n requests are written and wait for a sync.
func (q *queue) syncBegins(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.syncs++
	q.written += n
}

func (q *queue) syncEnds(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.written -= n
	if q.syncs--; q.syncs == 0 {
		q.release()
	}
}

// remove takes a request out of the queue, and reports whether the request was in the queue. The goroutine of the
// request calls remove when it stops waiting. If a leader has already taken the request, the leader will not put it
// back into the queue.
func (q *queue) remove(r *request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	r.gone = true
	for i, w := range q.waiting {
		if w == r {
			q.waiting = append(q.waiting[:i], q.waiting[i+1:]...)
			return true
		}
	}
	return false
}

// take removes the waiting requests from the queue, at most as many as fit into one write, and returns them.
func (q *queue) take() []*request {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, size := 0, uint64(0)
	for n < len(q.waiting) && (n == 0 || size+q.waiting[n].size <= groupLimit) {
		size += q.waiting[n].size
		n++
	}
	taken := append([]*request(nil), q.waiting[:n]...)
	q.waiting = append(q.waiting[:0], q.waiting[n:]...)
	return taken
}

// giveBack returns the requests in list to the head of the queue. The leader took them but has not written them.
// giveBack drops the requests whose goroutine no longer waits.
func (q *queue) giveBack(list []*request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	list = slices.DeleteFunc(slices.Clone(list), func(r *request) bool { return r.gone })
	q.waiting = append(list, q.waiting...)
}

// pass makes the goroutine of the first request in the queue the leader. If the queue is empty, no goroutine is the
// leader.
func (q *queue) pass() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) > 0 {
		q.waiting[0].wake <- wakeLead
		return
	}
	q.leading = false
}

// await blocks until the request is answered. If lead is true, or if this goroutine becomes the leader while it waits,
// await first writes the next group of requests (see lead). If ctx ends before a leader has taken the request, the
// request is not written and the error is that of ctx. If ctx ends later, and the request is not answered yet, the
// error matches errs.ErrOutcomeUnknown.
func (l *FileLog) await(ctx context.Context, r *request, lead bool) (LSN, error) {
	if lead {
		l.lead(ctx, r)
		return r.answer()
	}
	select {
	case w := <-r.wake:
		return l.woken(ctx, r, w)
	case <-ctx.Done():
	}
	if l.q.remove(r) {
		// The request was not taken, but the lead may have been passed to it in the meantime.
		select {
		case <-r.wake:
			l.q.pass()
		default:
		}
		return 0, ctx.Err()
	}
	r.ended()
	select {
	case w := <-r.wake:
		return l.woken(ctx, r, w)
	default:
		return 0, fmt.Errorf("%w: %w", errs.ErrOutcomeUnknown, ctx.Err())
	}
}

func (l *FileLog) woken(ctx context.Context, r *request, w wake) (LSN, error) {
	switch w {
	case wakeLead:
		l.lead(ctx, r)
	case wakeSync:
		l.settle(ctx, r)
	}
	return r.answer()
}

func (r *request) answer() (LSN, error) {
	if r.err != nil {
		return 0, r.err
	}
	if n := len(r.batch.Entries); n > 0 {
		return r.batch.Entries[n-1].LSN, nil
	}
	return r.end, nil
}

// close makes the queue refuse new requests.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
}

func (q *queue) isClosed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}
