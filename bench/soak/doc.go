// Command soak lets several processes work on one store for an hour, kills one of them each minute,
// and judges from outside whether the store holds what it promises.
//
//	go run ./soak [-minutes 60] [-processes 4] [-goroutines 4] [-seed N] [-o SOAK.md] DIR
//
// DIR is new or empty, and stays. The load is mixed: puts, updates, batches, gets, searches by words,
// deletes, purges, sessions that are counted and deleted, and working memory, over a set of keys that
// does not grow. Each key has one writer at a time.
//
// What the processes are told is kept in this one (internal/acklog). Every few minutes (-check) they
// stop for a moment: each key must have a state that was acknowledged or begun last, and a
// verification must find nothing. So at the end, after all have closed.
//
// There is one purge a minute, by one process after the other. A purge gives up where another one, or a
// flush, takes longer than is waited for a lock. It is made again, up to five times; the table counts it. A
// process that cannot get that lock when it closes the store leaves the files to the others.
//
// The table has a row for each minute. These are failures, and the exit status is 1 then:
//
//	an acknowledged write is lost, or an operation has an error
//	a verification finds something
//	a second without a commit, apart from those in which the judge had stopped the processes
//	memory, open files or the disk beyond their bounds (-rss, -handles, -disk)
//	growth: the last third of the run needs much more than the first (memory of the process that
//	is never killed, open files, disk; p50 and p99 of the commits)
package main
