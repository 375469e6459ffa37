// Command bench measures Varve and its peers in one run, on one disk, in the
// same minutes, beside the limits of that disk.
//
//	go run . [-quick] [-rounds 3] [-prose] [-dir DIR] [-engines list] [-only workloads] [-o RESULTS.md]
//	go run . -rates [-steps sizes] [-dir DIR]    op rate and settled rate by what the store holds
//	go run . -steady FOLDER [-minutes 3] [-mixed 10] [-engines list] [-only loads]
//	go run . -recover [-rounds 5] [-seconds 10] [-only put64,batch1000]    the next open after kill -9
//	go run . -waiting [-steps 10000,100000] [-rounds 3] [-engines varve,sqlite,bbolt] [-only rows]
//
// It is a module of its own, so that the peers burden no user of Varve. A
// round runs each workload on each engine before the next workload begins, in
// an order that turns with the round: noise hits all. A workload begins with
// an empty folder. Every number is the median of the rounds, with the least
// and the greatest beside it.
//
// The workloads, with JSON documents of 1 KB of random letters (with -prose: of words, as a steady cell has
// them) under ids like UUIDs:
//
//	put1, put64      durable puts, each its own commit, 1 and 64 goroutines
//	batch1000        durable batches of 1,000
//	put4x16          durable puts of 4 processes with 16 goroutines each
//	hot              the same on four ids; updates of them; increments of four counters (of Varve, in
//	                 scopes of working memory; of SQLite, rows of a table)
//	get1, get2       reads of 10,000 hot documents out of -n, 1 and 2 goroutines
//	fresh            reads of -files documents that were just put, and after a flush; also past the cache
//	open             opening the filled store and reading one document, by the same process (warm cache)
//	disk, heap       what the filled store takes
//	create, replace  documents a second until all files and the index are durable, -files of them
//
// A steady cell is an engine under a load that does not let up, for minutes: paced (2,000 puts a second,
// each counted from when it was due), put1, put64, batch1000, put4x16 (where a second process is
// admitted), read90 (16 goroutines, 90 % reads of skewed popularity over -n documents, 1,000,000 by
// default) and, of Varve, mixed (4 processes of 16 goroutines: 60 % reads, 39 % puts, 1 % batches of
// 100). Its workers are processes of their own, which count by the second; an fdatasync is measured
// before and after. FOLDER gets a file for each cell, a picture of it and STEADY.md, into which
// FOLDER/REMARKS.md goes; a cell whose file is there, of the same length and with as many documents, is
// not measured again, so a run that was cut goes on. The documents are words of a vocabulary with the
// frequencies of a language: an engine that indexes words would otherwise have to keep millions that no
// text has.
//
// Settled counts from the first put to the moment when all files and the index
// are durable: puts by 64 goroutines, then a flush.
//
// The limits: an fdatasync after each append of 1 KB to prepared space; the
// system calls that create or replace a file each, made by two workers, with a
// syncfs at the end and, beside the workers, one after every 4,096 files, as the
// engine makes them with all its guards (a look at the place before the exchange;
// the lease on what was displaced and a look at it after); and these with the
// calls that put the same documents into the log before (64 to a write and an
// fdatasync, at the same time as the files), into the index after, and that read
// the document which a put replaces. No limit counts making the document, its
// hash, or finding it.
//
// Documents are made before a burst begins, and from the second time round have
// fresh ids: making text would be a tenth of a fast put. What is not written yet when a workload
// begins is written first (sync), whichever workload left it: else a barrier of the next engine
// would wait for the files of the one before.
//
// Every engine acknowledges a put only when it is durable. Its other settings
// are the best that its documentation or its large users know; they stand as
// comments in the file of the engine.
//
// The folder must not be on tmpfs. Folders with many files are removed only
// at the end, because ext4 without a journal does not reuse inodes within a minute
// of their deletion (five minutes if that is not written yet), and passes over each when it looks
// for one: creation then falls to a sixth, in the burst of the next engine. Folders of few files,
// however large, are removed at once. The end of one run spoils the beginning of the next in the
// same way (after a million files, 4,000 new ones took 2.8 s instead of 0.15): wait six minutes, or
// have them left by -keep.
package main
