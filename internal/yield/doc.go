// Package yield lets what computes for long beside others give them a turn now and then: a flush beside
// commits.
//
// The runtime takes the processor from a goroutine after ten milliseconds, and a commit is several turns: its
// write, its sync, each of those that wait for it. But what gives it up comes behind all that want it, and
// where those compute too, that is ten milliseconds for each of them. So after a turn of others one's own
// lasts as long at least: what gives turns has half of the share that it would have otherwise, in the worst
// case.
package yield
