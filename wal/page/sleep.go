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

// Sleeps reports whether the system supports that a process sleeps until a word of the page changes.
func (p Page) Sleeps() bool {
	_, ok := p.words.(vfs.Awaiter)
	return ok
}

// Releases returns the number of times that a lock was released.
func (p Page) Releases(lock int) uint64 { return p.words.Load(wordReleases + lock) }

// Waiters returns the number of processes that sleep until a lock is released. Processes that were killed while they
// slept count too.
func (p Page) Waiters(lock int) uint64 { return p.words.Load(wordWaiters + lock) }

// AwaitRelease sleeps until a lock is released, but at most for the given time. During the sleep, this process counts
// as a waiter of the lock. If the value of Releases is no longer was, the value that the caller has seen, AwaitRelease
// returns at once. Call it only if Sleeps returns true.
func (p Page) AwaitRelease(lock int, was uint64, most time.Duration) {
	p.add(wordWaiters+lock, 1)
	p.words.(vfs.Awaiter).Await(wordReleases+lock, was, most)
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

// RaiseSleeper records that this process is about to sleep until the durable position changes, and the position that it
// has seen.
func (p Page) RaiseSleeper(was uint64) { p.raise(wordSleeper, was) }

// ClearSleeper sets the position that Sleeper returns to 0 if it is still was.
func (p Page) ClearSleeper(was uint64) { p.words.CompareAndSwap(wordSleeper, was, 0) }

// AwaitDurable sleeps until the durable position is not was any more, but at most for the given time. Call it only if
// Sleeps returns true.
func (p Page) AwaitDurable(was uint64, most time.Duration) {
	p.words.(vfs.Awaiter).Await(wordDurable, was, most)
}

// WakeDurable wakes the processes that sleep in AwaitDurable. Call it only if Sleeps returns true.
func (p Page) WakeDurable() { p.words.(vfs.Awaiter).Wake(wordDurable) }
