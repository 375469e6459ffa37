// Command bench measures Varve and its peers in one run, on one disk, within the same minutes, together with the limits
// of that disk.
//
//	go run . [-quick] [-rounds 3] [-prose] [-dir DIR] [-engines list] [-only workloads] [-o RESULTS.md]
//	go run . -rates [-steps sizes] [-dir DIR]    op rate and settled rate by what the store holds
//	go run . -steady FOLDER [-minutes 3] [-mixed 10] [-engines list] [-only loads]
//	go run . -recover [-rounds 5] [-seconds 10] [-only put64,batch1000]    the next open after kill -9
//	go run . -waiting [-steps 10000,100000] [-rounds 3] [-engines varve,sqlite,bbolt] [-only rows]
//
// It is a module of its own, so that users of Varve do not depend on its peers. A round runs each workload on each
// engine before the next workload begins, in an order that changes with the round, so that noise affects all engines. A
// workload begins with an empty folder. Every number is the median of the rounds, with the least and the greatest
// beside it.
//
// The workloads use JSON documents of 1 KB under ids like UUIDs. The documents consist of random letters or, with
// -prose, of words, as in a steady cell:
//
//	put1, put64      durable puts, each its own commit, 1 and 64 goroutines
//	batch1000        durable batches of 1,000
//	put4x16          durable puts of 4 processes with 16 goroutines each
//	hot              durable puts on four ids; updates of these ids; increments of four counters (for Varve, in
//	                 scopes of working memory; for SQLite, in rows of a table)
//	get1, get2       reads of 10,000 hot documents out of -n, 1 and 2 goroutines
//	fresh            reads of -files documents that were just put, before and after a flush; also past the cache
//	open             opening the filled store and reading one document, by the same process (warm cache)
//	disk, heap       what the filled store takes
//	create, replace  documents a second until all files and the index are durable, -files of them
//
// A steady cell is one engine under a load that continues for minutes: paced (2,000 puts a second, the duration of each
// counted from when it was due), put1, put64, batch1000, put4x16 (for engines that admit a second process), read90 (16
// goroutines, 90 % reads of skewed popularity over -n documents, 1,000,000 by default) and, for Varve, mixed (4
// processes of 16 goroutines: 60 % reads, 39 % puts, 1 % batches of 100). The workers of a cell are separate processes,
// which count by the second; an fdatasync is measured before and after. FOLDER gets a file for each cell, a picture of
// it and STEADY.md, which includes FOLDER/REMARKS.md. A cell that has a file, of the same length and with as many
// documents, is not measured again, so an interrupted run can be continued. The documents are words of a vocabulary
// with the frequencies of a natural language: with random letters, an engine that indexes words would have to keep
// millions of words that no text has.
//
// Settled rates count from the first put, by 64 goroutines, to the end of a flush, when all files and the index are
// durable.
//
// The limits are what the disk and the file system allow:
//
//   - an fdatasync after each append of 1 KB to space that is written out in advance;
//   - the system calls that create or replace one file each, made by two workers, with a syncfs after every
//     4,096 files and at the end, as the engine makes them with all its checks (a look at the place before
//     the exchange; the lease on the displaced file and a look at it afterwards);
//   - the same, together with the calls that put the same documents into the log before (64 to a write and
//     an fdatasync, at the same time as the files), write the index after, and read the document that a put
//     replaces.
//
// No limit includes making the document, computing its hash, or finding it.
//
// Documents are made before a burst begins, and from the second burst on have new ids: making text would take a tenth
// of the time of a fast put. Before a workload begins, what previous workloads have left unwritten is written (sync).
// Otherwise a barrier of the next engine would wait for the files of the previous one.
//
// Every engine acknowledges a put only when it is durable. Its other settings are the best that its documentation or
// its large users know; comments in the file of the engine list them.
//
// The folder must not be on tmpfs. Folders with many files are removed only at the end of the run. The reason is that
// ext4 without a journal does not reuse an inode within a minute of its deletion (five minutes if the deletion is not
// written yet), and examines each of these inodes when it looks for a free one: creating files then takes six times as
// long, in the burst of the next engine. Folders with few files, however large, are removed at once. The end of one run
// slows down the beginning of the next in the same way (after a million files, 4,000 new ones took 2.8 s instead of
// 0.15): wait six minutes between runs, or keep the folders with -keep.
package main
