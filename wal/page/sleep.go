package page

import (
	"time"

	"github.com/varve-db/varve/internal/vfs"
)

// The locks that processes wait for on the page.
const (
	AppendLock = 0
	SyncLock   = 1
)

// Sleeps reports whether a process can sleep on the page until a word changes, which the system decides.
func (p Page) Sleeps() bool {
	_, ok := p.words.(vfs.Awaiter)
	return ok
}

// Releases returns how often a lock was released.
func (p Page) Releases(lock int) uint64 { return p.words.Load(wordReleases + lock) }

// Waiters returns how many processes sleep until a lock is released, or were killed while they slept.
func (p Page) Waiters(lock int) uint64 { return p.words.Load(wordWaiters + lock) }

// AwaitRelease counts this process among the waiters and sleeps until a lock is released, if Releases is
// still what it was, for most at most. Sleeps must be true.
func (p Page) AwaitRelease(lock int, was uint64, most time.Duration) {
	p.add(wordWaiters+lock, 1)
	p.words.(vfs.Awaiter).Await(wordReleases+lock, was, most)
	p.add(wordWaiters+lock, ^uint64(0))
}

// Released counts a release of a lock, and wakes the processes that wait for it. Sleeps must be true.
func (p Page) Released(lock int) {
	p.add(wordReleases+lock, 1)
	if p.words.Load(wordWaiters+lock) != 0 {
		p.words.(vfs.Awaiter).Wake(wordReleases + lock)
	}
}

// Sleeper returns where durable was for the newest process that sleeps until it moves, 0 if none does.
func (p Page) Sleeper() uint64 { return p.words.Load(wordSleeper) }

// RaiseSleeper records that this process is about to sleep, and where it saw durable.
func (p Page) RaiseSleeper(was uint64) { p.raise(wordSleeper, was) }

// ClearSleeper removes the record unless it is another one by now.
func (p Page) ClearSleeper(was uint64) { p.words.CompareAndSwap(wordSleeper, was, 0) }

// AwaitDurable sleeps until durable is another position than it was, for most at most. Sleeps must be true.
func (p Page) AwaitDurable(was uint64, most time.Duration) {
	p.words.(vfs.Awaiter).Await(wordDurable, was, most)
}

// WakeDurable wakes the processes in AwaitDurable. Sleeps must be true.
func (p Page) WakeDurable() { p.words.(vfs.Awaiter).Wake(wordDurable) }
