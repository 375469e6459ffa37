// Package yield lets a long computation give other goroutines a turn now and then: a flush gives turns
// to commits.
//
// The runtime preempts a goroutine after ten milliseconds, and a commit takes several turns: its write,
// its sync, and each of the goroutines that wait for it. But a goroutine that yields is queued behind
// all that are runnable, and if those compute too, that takes ten milliseconds for each of them. So
// after a turn of others a goroutine keeps the processor for at least as long as that turn lasted: in
// the worst case it has half of the share that it would have otherwise.
package yield
