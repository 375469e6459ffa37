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

// A group of batches is written at once: at most groupLimit bytes, or one batch.
const groupLimit = 8 << 20

// groupEnough is how many requests make a write worth while, while another sync
// is under way: as many as this, or half of those that wait for that sync. Measured, 4
// processes of 16 goroutines: 69,000 puts/s instead of 63,000 when each waits for 16,
// which it never has; 64 goroutines of one process wait for 16 as before.
const groupEnough = 16

// request is a batch on its way.
type request struct {
	batch   *Batch
	size    uint64 // in the log
	deletes bool   // nothing but deletes: may use the last of the space
	since   time.Time

	gone bool // nobody waits for it any more: under the queue's mu
	preparing

	// Written by the leader that took the request, read after wake says done.
	end  LSN // to be durable before the answer is given; 0: nothing to wait for
	err  error
	wake chan wake
}

// wake is what a waiting goroutine is told.
type wake int8

const (
	wakeDone wake = iota // the answer is there
	wakeLead             // write the next group
	wakeSync             // it is written; see to it yourself that it becomes durable
)

// queue is where goroutines wait for the one among them that writes.
type queue struct {
	mu      sync.Mutex
	waiting []*request
	leading bool
	closed  bool
	syncs   int           // of this process under way
	written int           // requests that wait for one of them
	enough  chan struct{} // closed when a leader need not wait for more
}

// Append returns when the batch is durable, with the LSN of its last entry. It sets LSN and
// Time of the entries. When ctx ends after the write the error is errs.ErrOutcomeUnknown.
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
		// Answered: nobody else has it in hand. After an error a leader may.
		*r = request{wake: r.wake}
		l.requests.Put(r)
	}
	return lsn, err
}

// enqueue adds a request to the queue and waits for its answer.
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
			return nil, fmt.Errorf("entry %d of the batch: %w key or kind", i, errs.ErrInvalid)
		}
		r.size += segment.FrameSize(uint64(len(e.Key) + len(e.Value)))
		r.deletes = r.deletes && (e.Delete || b.Frees)
		if limit := l.Limit(); r.size > limit || uint64(e.Inflated) > limit {
			err := errs.ErrBatchTooLarge
			if len(b.Entries) == 1 {
				err = errs.ErrTooLarge
			}
			return nil,
				fmt.Errorf("%w: the batch takes more than the %d bytes that one commit may have in this log (half a segment): "+
					"write it in parts", err, limit)
		}
	}
	return r, nil
}

// add queues a request; lead says that its goroutine is to write.
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

// gather lets a leader wait while a sync is under way anyway, until enough are
// queued to be worth a write of their own.
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

// worthWhile reports whether enough are waiting; mu is held.
func (q *queue) worthWhile() bool { return len(q.waiting) >= min(groupEnough, max(1, q.written/2)) }

// release lets the leader go on; mu is held.
func (q *queue) release() {
	if q.enough != nil {
		close(q.enough)
		q.enough = nil
	}
}

// syncBegins says that n requests are written, and wait for a sync.
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

// remove takes a request back that no leader has taken yet. One that was taken is left to the
// leader, which will not give the lead to it: nobody waits for it.
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

// take hands the leader what is waiting, at most a group.
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

// giveBack puts what the leader did not write back at the head of the queue, except entries without
// a waiter: they are not written.
func (q *queue) giveBack(list []*request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	list = slices.DeleteFunc(slices.Clone(list), func(r *request) bool { return r.gone })
	q.waiting = append(list, q.waiting...)
}

// pass hands the lead to the next in the queue.
func (q *queue) pass() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) > 0 {
		q.waiting[0].wake <- wakeLead
		return
	}
	q.leading = false
}

// await leads or waits until the request has its answer.
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
		// Nobody has touched it; but the lead may have been passed to us meanwhile.
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

// close lets nobody in any more.
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
