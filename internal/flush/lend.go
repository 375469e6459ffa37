package flush

import (
	"context"

	"github.com/varve-db/varve/wal"
)

// A background round holds flush.lock while an index is written, and while the views are updated from it: that takes
// 10 s for 100,000 notes on a busy machine. A watcher that adopts an edited file needs the lock as well, and must
// not wait that long: a content that is overwritten meanwhile would be in no history. So the background goroutine
// lends the lock between two rounds (Lock), and an adoption leaves the index and the views to that goroutine
// (FlushFiles).
//
// A watcher in another process cannot borrow the lock. So while another process watches, a background round updates the
// views for a limited number of changes (mostAtOnce), which takes about a second, releases the lock, and continues
// after a short rest. The watcher gets the lock then. An index is still written in one hold.

// loan is a request to use flush.lock, which the background goroutine holds.
type loan struct {
	held chan *wal.Held // receives the lock; buffered
	back chan struct{}  // closed by the borrower
}

// Lock takes flush.lock. If the background goroutine of this process has the lock and waits for work beside rounds,
// Lock borrows the lock from that goroutine. The caller gives the lock back by calling unlock. Until then the caller
// may commit, and put files in place.
func (fl *Flusher) Lock(ctx context.Context) (held *wal.Held, unlock func(), err error) {
	log := fl.engine.Log()
	if !fl.inBackground() {
		held, err = log.LockFlush(ctx)
		return held, func() { held.Unlock() }, err
	}
	if held, err = log.TryLockFlush(); held != nil || err != nil {
		return held, func() { held.Unlock() }, err
	}
	type locked struct {
		held *wal.Held
		err  error
	}
	waits, cancel := context.WithCancel(ctx)
	defer cancel()
	took := make(chan locked, 1)
	go func() {
		held, err := log.LockFlush(waits)
		took <- locked{held, err}
	}()
	l := loan{make(chan *wal.Held, 1), make(chan struct{})}
	select {
	case is := <-took:
		return is.held, func() { is.held.Unlock() }, is.err
	case fl.loans <- l:
	}
	cancel()
	if is := <-took; is.held != nil { // cannot be: the lender holds it
		is.held.Unlock()
	}
	return <-l.held, func() { close(l.back) }, nil
}

// lend lets the goroutine that sent the request l use flush.lock. It returns when that goroutine has given the lock
// back.
func lend(held *wal.Held, l loan) {
	l.held <- held
	<-l.back
}

// mostAtOnce returns the maximum number of changes for which a background round updates the views while it holds
// flush.lock; 0 means no limit. There is a limit only while another process watches the files, because that process
// needs the lock to adopt an edited file.
func (fl *Flusher) mostAtOnce() int {
	if ps := fl.engine.Log().Processes(); ps.Leads() || ps.Leader() == 0 {
		return 0
	}
	return closingWords
}

// inBackground reports whether this process has a goroutine that flushes in the background.
func (fl *Flusher) inBackground() bool {
	return !fl.engine.Env().NoBackground && !fl.engine.Env().System.Inline && !fl.engine.Env().ReadOnly
}

// FlushFiles does the same as Flush, except for the index and the views. If this process has a background goroutine,
// FlushFiles leaves them to it; the goroutine writes them within a second.
func (fl *Flusher) FlushFiles(ctx context.Context, m Merge) error {
	held, unlock, err := fl.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	fl.leaves = fl.inBackground()
	defer func() { fl.leaves = false }() // before another round can begin
	return fl.engine.Log().Folder().Explain(fl.FlushLocked(ctx, held, m))
}
