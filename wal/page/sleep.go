package page

import (
	"time"

	"github.com/varve-db/varve/internal/vfs"
)

// The locks that processes wait for on the page, instead of in the system.
const (
	AppendLock = 0
	SyncLock   = 1
)

// Sleeps reports whether a process can sleep until a word of the page changes. Not every system supports this.
func (p Page) Sleeps() bool {
	_, ok := p.words.(vfs.Awaiter)
	return ok
}

// Releases returns the number of times that a lock was released.
func (p Page) Releases(lock int) uint64 { return p.words.Load(wordReleases + lock) }

// Waiters returns the number of processes that sleep until a lock is released. Processes that were killed while they
// slept count too.
func (p Page) Waiters(lock int) uint64 { return p.words.Load(wordWaiters + lock) }

// AwaitRelease sleeps until a lock is released, but at most for timeout. releases is the value of Releases that
// the caller has seen: if Releases returns another value by now, AwaitRelease returns at once. During the sleep,
// this process counts as a waiter of the lock. Call AwaitRelease only if Sleeps returns true.
func (p Page) AwaitRelease(lock int, releases uint64, timeout time.Duration) {
	p.add(wordWaiters+lock, 1)
	p.words.(vfs.Awaiter).Await(wordReleases+lock, releases, timeout)
	p.add(wordWaiters+lock, ^uint64(0))
}

// Released counts a release of a lock, and wakes the processes that wait for the lock. Call it only if Sleeps returns
// true.
func (p Page) Released(lock int) {
	p.add(wordReleases+lock, 1)
	if p.words.Load(wordWaiters+lock) != 0 {
		p.words.(vfs.Awaiter).Wake(wordReleases + lock)
	}
}

// Sleeper returns the highest durable position that was seen by a process that then went to sleep until this position
// changes, or 0 if no process sleeps.
func (p Page) Sleeper() uint64 { return p.words.Load(wordSleeper) }

// RaiseSleeper records that this process has seen the durable position pos, and is about to sleep until the
// durable position changes. If pos or a higher position is already recorded, RaiseSleeper does nothing.
func (p Page) RaiseSleeper(pos uint64) { p.raise(wordSleeper, pos) }

// ClearSleeper sets the position that Sleeper returns to 0, but only if this position still equals pos.
func (p Page) ClearSleeper(pos uint64) { p.words.CompareAndSwap(wordSleeper, pos, 0) }

// AwaitDurable sleeps while the durable position is pos, but at most for timeout. Call it only if Sleeps returns
// true.
func (p Page) AwaitDurable(pos uint64, timeout time.Duration) {
	p.words.(vfs.Awaiter).Await(wordDurable, pos, timeout)
}

// WakeDurable wakes the processes that sleep in AwaitDurable. Call it only if Sleeps returns true.
func (p Page) WakeDurable() { p.words.(vfs.Awaiter).Wake(wordDurable) }
