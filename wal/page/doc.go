// Package page is the shared page of a log, the file wal/shared: 512 words that every process which
// has the log open maps. It owns the layout of the page. A Page has a method for each word, or for each
// group of words that change together; package wal and its callers never use the number of a word.
//
// A method is one access to one word unless its comment lists the accesses in their order. Callers
// rely on that order, and golden traces record it.
//
// A page whose file is cut short is guarded: each access may fault, and from the first fault on the
// page is memory of this process alone, in which no position decreases. Package vfs, which maps the
// file, catches the fault; Page.Cut reports it.
//
// The package is called by wal, and calls package vfs.
//
// # Layout
//
// 512 words of 8 bytes; each is written in one step.
//
//	0       "vvshare1"
//	1, 2    boot id; the page is valid only within this boot
//	3       recovered: the generation, 0 during recovery, which sets it last
//	4       tail: everything before it is written
//	5       durable: everything before it is synced
//	6       syncing: 1 from before a sync until it has succeeded
//	7       poison: 1 a sync failed, 2 the log is damaged
//	8, 9    flushed and spilled, as in checkpoint
//	10      prepared: the newest segment is written out up to here
//	11      inode of the page's file: a page that was copied with its folder is ignored
//	12      1 from an unclean recovery until all files above flushed were written again
//	13      the newest segment that a process creates in the background
//	14      1 from the death of a holder of flush.lock until tmp/ has been searched
//	15      how often an existing index was replaced by a rebuilt one: a process that has the old
//	        one mapped opens the new one
//	16–21   the last taker of each lock: process id and Unix seconds; for messages only, flock is
//	        authoritative
//	22      tail when the oldest of the running copies of the log (backups) began
//	23      durable as seen by the newest process that sleeps until it moves, 0 if no process sleeps
//	24      id of the process that has watch.lock; also used by a process that misses a file
//	25, 26  relates the time by which working memory expires to the machine's uptime, see
//	        Anchor: the difference in milliseconds, its highest bit inverted, 0 while there is
//	        none; the uptime at which it was set, its highest bit set once a later reading of
//	        the clock has confirmed it. A recovery in the same boot keeps both
//	27      until when the background flushers of all processes pause, milliseconds of
//	        the machine's uptime
//	28, 29  how often append.lock and sync.lock were released
//	30, 31  how many processes sleep until append.lock or sync.lock is released, or were killed while
//	        they slept
//	32      the process that purges: its id, and the low half of its birth; 0 if no process purges.
//	        While it is set, flushers keep what they displace for the purge, and files of the log are
//	        overwritten before they are removed
//	33      inode of the folder wal/ to which the log belongs; 0 if none is recorded. It
//	        distinguishes a folder of hard links (cp -al) from its original, see home.go
//	34      filed: entries below it are in files, except for scopes of working memory that may lag
//	35, 36  bytes of log that flushers put into files recently, and the nanoseconds that they took:
//	        sums that decay within seconds of flushing
//	37      until when writers have taken turns, nanoseconds of the machine's uptime; see pace.go
//	38      1 from when a purge failed, or was found killed, until one is completed: files of log and
//	        index are overwritten before they are removed
//	39      tail when the failed purge was noticed: flushers keep and overwrite what they displace until all
//	        entries below it are in files; 0 if there is nothing to overwrite
//	40      raised to distinguish the page from a copy of it, see Folder.InPlace
//	41      while the leader (word 24) has no notifications: its id, and in the low byte a PollCause
//	42      sequence of the newest checkpoint, 0 if none is recorded: a checkpoint with a lower one is
//	        a copy that has replaced it
//	48      features of the store
//	49      how many attached processes that know features found no place on the list that begins
//	        at 64. A killed one counts until the next recovery
//	50–63   sets of features that attached processes know, each complemented; 0 is a free place
//	64–255  ids of the attached processes; for messages, and for raising features
//	256–447 births of these processes, see vfs.Host: identify the ids of killed processes
//	448–511 which set each of them knows: three fields of 21 bits in a word, from the lowest bit.
//	        Bits 0–4 place of the set, from 1, 0 if not recorded; bits 5–20 the low bits
//	        of xxhash64 of process id and birth (2 × uint64), so that a field of a process
//	        that has ended is ignored
package page
