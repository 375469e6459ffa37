// Package served holds the store that a server serves, and exchanges it when its folder was replaced.
//
// The folder of an open store may be removed, restored or switched while a server runs: the calls of the store then
// return varve.ErrReplaced. A Store opens what is at the path now, by all the checks with which the first store was
// opened, and serves it from then on. Every server of a program (packages mcpserver, memorystores and page) takes the
// store from the same Store, so that they all serve the same one, whichever of them notices first.
//
//	held := served.New(st, served.Options{Open: open})
//	defer held.End()
//	now, err := held.Acquire(ctx)
//	defer held.Release(now)
//
// # Invariants
//
//   - A store that was acquired stays open until it is released.
//   - A store is exchanged once, by one call; others that notice the same wait for it.
//   - Until the next store is open, the previous one is held: its calls fail, and each of them tries again to open the
//     next one.
//   - A call whose context is Pinned to a store gets that one, or an error.
//   - The first store is the caller's: Options.Close closes it if it was replaced, but End does not close it.
package served
