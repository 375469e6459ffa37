// Command soak lets several processes work on one store for an hour, kills one of them each minute,
// and judges from outside whether the store holds what it promises.
//
//	go run ./soak [-minutes 60] [-processes 4] [-goroutines 4] [-seed N] [-o SOAK.md] DIR
//
// DIR is new or empty, and stays. The load is mixed: puts, updates, batches, gets, searches by words,
// deletes, purges, sessions that are counted and deleted, and working memory, over a set of keys that
// does not grow. Each key has one writer at a time.
//
// The parent process records the answers that the processes get (internal/acklog). Every few minutes
// (-check) the processes stop for a moment. Then each key must have the state of the last acknowledged write,
// or of one that was begun since, and a verification must find nothing. The same is checked at the end, after
// all processes have closed the store.
//
// Each minute one of the processes purges, in turn. A purge gives up if another purge, or a flush, holds the
// lock for longer than the purge waits. Then it is tried again, up to five times; the table counts these
// cases. A process that cannot get the lock when it closes the store leaves the files to the others.
//
// The table has a row for each minute. In these cases the run has failed, and the exit status is 1:
//
//	an acknowledged write is lost, or an operation has an error
//	a verification finds something
//	a second passes without a commit, although the parent had not stopped the processes
//	memory, open files or disk space exceed their limits (-rss, -handles, -disk)
//	the last third of the run needs much more than the first third (memory of the process that is never
//	killed, open files, disk space; p50 and p99 of the commits)
package main
