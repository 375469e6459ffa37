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

// Sleeps reports whether the system lets a process sleep on the page until a word changes.
func (p Page) Sleeps() bool {
	_, ok := p.words.(vfs.Awaiter)
	return ok
}

// Releases returns how often a lock was released, as a counter that only grows.
func (p Page) Releases(lock int) uint64 { return p.words.Load(wordReleases + lock) }

// Waiters returns how many processes sleep until a lock is released, or were killed while they slept.
func (p Page) Waiters(lock int) uint64 { return p.words.Load(wordWaiters + lock) }

// AwaitRelease sleeps until a lock is released, at most for the given time, and counts this process among the
// lock's waiters meanwhile. It returns at once unless Releases still returns was. Sleeps must be true.
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

// Sleeper returns the durable position that was seen by the newest process that sleeps until that position
// moves, 0 if there is none.
func (p Page) Sleeper() uint64 { return p.words.Load(wordSleeper) }

// RaiseSleeper records that this process is about to sleep until the durable position moves, and the position
// that it saw.
func (p Page) RaiseSleeper(was uint64) { p.raise(wordSleeper, was) }

// ClearSleeper resets the value of Sleeper to 0 if that value still equals was.
func (p Page) ClearSleeper(was uint64) { p.words.CompareAndSwap(wordSleeper, was, 0) }

// AwaitDurable sleeps until the durable position differs from was, for at most the given time. Sleeps must be
// true.
func (p Page) AwaitDurable(was uint64, most time.Duration) {
	p.words.(vfs.Awaiter).Await(wordDurable, was, most)
}

// WakeDurable wakes the processes in AwaitDurable. Sleeps must be true.
func (p Page) WakeDurable() { p.words.(vfs.Awaiter).Wake(wordDurable) }
