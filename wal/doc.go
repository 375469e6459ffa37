// Package wal is the log: an ordered list of entries, durable when acknowledged,
// that several processes on one machine write and read at once. FileLog keeps it in
// the folder wal/ of a store, and applies it to a Machine. What is applied, read or
// waited for is durable, and no entry appears later below one that has been seen. The
// bytes of frames and segments belong to package segment.
//
// # The folder
//
//	wal/00000017.wal   segments; written out in zeros ahead of the tail, recycled when released
//	wal/shared         a mapped page of words: where the log stands
//	wal/owner          boot id and heartbeat of those who use it
//	wal/*.lock         open attach flush append sync hold, taken in this order; watch, by itself
//	wal/features       a copy of the features, beside those in checkpoint; not there before the first
//	wal/expiry         not the log's: when the store saw that something had expired
//	wal/archive/*.zst  copies of released segments
//	checkpoint         two slots, written in turn: what a node's files cover
//
// # shared
//
// 512 words of 8 bytes; each is written in one step.
//
//	0       "vvshare1"
//	1, 2    boot id; the page counts only within this boot
//	3       recovered: the generation, 0 while it is being recovered; it is set last
//	4       tail: everything before it is written
//	5       durable: everything before it is synced
//	6       syncing: 1 from before a sync until it has succeeded
//	7       poison: 1 a sync failed, 2 the log is damaged
//	8, 9    flushed and spilled, as in checkpoint
//	10      prepared: the newest segment is written out up to here
//	11      inode of the page's file: a page that was copied with its folder counts for nothing
//	12      1 from an unclean recovery until all files above flushed were written again
//	13      the newest segment that some process makes in the background
//	14      1 from when a holder of flush.lock died until tmp/ was looked through
//	15      how often the index was rebuilt in place of an existing one: a process that has that
//	        mapped looks again
//	16–21   who took each lock last: process id and Unix seconds; for messages, flock is the truth
//	22      where the tail was when the oldest of those began who copy from the log
//	23      where durable was for the newest of those who sleep until it moves, 0 when nobody does
//	24      id of the process that has watch.lock; for people, and for who meets a file that is gone
//	25, 26  what ties the time by which working memory expires to the machine's uptime, see
//	        Anchor: the difference in milliseconds, its highest bit turned, 0 while there is
//	        none; the uptime at which it was set. They outlive a recovery in the same boot
//	27      until when the flushers in the background of all processes rest, milliseconds of
//	        the machine's uptime
//	28, 29  how often append.lock and sync.lock were let go
//	30, 31  how many processes sleep until they are, or were killed while they did
//	32      the process that purges: its id, and the low half of its birth; 0 when none does.
//	        While it is set, what flushers displace is kept for it, and files of the log are
//	        overwritten before they go
//	48      features of the store
//	49      how many attached processes found no place on the list that begins at 64, of those
//	        that know of features. A killed one counts until the next recovery
//	50–63   sets of features that attached processes know, each complemented; 0 is a free place
//	64–255  process ids of those attached; for people, and for raising features
//	256–447 which process it is that has the id, see vfs.Host: killed ones are known by it
//	448–511 which set each of them knows: three fields of 21 bits in a word, from the lowest bit.
//	        Bits 0–4 place of the set, from 1, 0 when the process does not say it; bits 5–20
//	        the low bits of xxhash64 of process id and birth (2 × uint64), so that a field that
//	        outlived its process counts for nothing
//
// # checkpoint
//
// Two slots of 4 KiB; the one with the higher sequence whose checksum holds is
// valid, the other one is written next.
//
//	 0  "VARVECHK", 8 uint32 version 1 or 2, 12 uint32 0, 16 uint64 sequence
//	24  16 bytes store UUID, 40 uint64 segment size
//	48  flushed, 64 spilled, 80 attested: uint64 LSN, uint64 chain hash there
//	96  4 × int64 modification times of folders, Unix nanoseconds
//	128 int64 time of the newest commit, Unix microseconds
//	136 uint64 xxhash64 of everything before
//
// and in version 2, which a store has from its first feature on
//
//	144 uint64 features
//	152 uint64 xxhash64 of everything before
//
// A mark names a position and the checksum of the last frame before it: since
// every frame names its predecessor's, two logs that agree in a mark agree in
// everything before it.
//
// # Features
//
// What a program must know to use a store is a set of bits, type Features: writers must know the
// low 32, writers and readers the high 32. A program that lacks one of the low
// half may open the store read-only; otherwise opening is *errs.FeatureError. A program older
// than features meets version 2 in a slot and refuses the store as written by a newer version;
// one slot is enough for it.
//
// Bits are added by FileLog.Raise and never taken back. They are stored in both slots of the
// checkpoint, and a feature counts when one of them has it; in wal/features, for a recovery that
// finds both slots damaged; and in word 48, for attached processes.
//
//	wal/features: 0 "VARVEFEA", 8 uint64 features, 16 uint64 xxhash64 of both
//
// Every process says in shared which features it knows. A raise waits until all on the list of
// attached processes say that they know it; one that says nothing is older than features. A raise
// holds open.lock, under which processes attach, from its look at the list until everything is
// durable. It writes wal/features, one slot, the other slot, word 48. Cut behind the first of
// them, it is finished by the next recovery; until then the slots say whether it has happened.
//
// The list has 192 places. While it is full, or a process that knows of features found no
// place, nothing is raised. An older process that found no place when the list was full, and
// stays until it is not, is not seen: it goes on appending, but can write no checkpoint any
// more, so it releases nothing of the log. And a program older than features opens a store
// whose two slots are both damaged by its segments, as it always did; the next recovery by a
// program that knows wal/features puts the features back.
//
// # Commit
//
// Goroutines queue; the first leads. Under append.lock it reads what others have
// written, judges preconditions, writes its group at the tail in one write with
// a header of zeros behind it, and publishes the tail. Under sync.lock it syncs,
// unless somebody else's sync has covered it. Then it applies.
//
// Readers see what is durable. Between durable and tail only preconditions look;
// a refusal that rests on something there is answered once that is durable.
//
// # flush.lock
//
// Its holder puts files in place, writes the index, and changes what the log and its page say of
// both: the checkpoint, what is released, words 12, 14, 15 and 27. FileLog.LockFlush returns a
// Held, which proves it. What only the holder may do takes one, here and in the packages above; a
// Held that was unlocked is refused.
//
// # Invariants
//
//   - Nobody writes before the tail but to write the same bytes again. The holder of append.lock
//     writes behind it.
//   - durable, flushed and spilled only move up, within one generation.
//   - tail, durable and attested stand at ends of batches. flushed and spilled may
//     stand within one: it is durable as a whole by then.
//   - A frame is in the log when it links to the one before it. What a killed
//     writer left behind the tail is not, whatever it says.
//   - syncing is set before every sync. A process that finds it set writes the frames from durable
//     to tail again before it syncs: pages of a failed sync look clean.
//   - Nothing is served after a recovery that was not synced in it.
//   - A segment goes when a checkpoint that releases it is durable, and one more
//     round after it.
//
// # Torn tail or damage
//
// A place without a valid frame is the torn tail if nothing attests that it was
// durable: not the checkpoint, not the shared page of this boot, not a frame
// behind it. Then it is put aside and cut. Otherwise it is damage; the log opens
// read-only, and nothing behind it is thrown away.
//
// # The past
//
// Past reads segments and archive as one. Each place is asked for in the file
// first, then in the copy: a segment that is recycled under a reader is read on
// from its copy. Where a durable place is in neither, that is a hole, and said so.
//
// # Choices
//
// A waiter whose sync keeps failing is answered after Options.LockWait, also
// when its ctx has no end: waiting without a word for a disk that has died helps
// nobody. The outcome is then unknown.
//
// Commit times grow strictly, by a microsecond at least, over the whole log:
// they become the files' mtimes, and so two versions never share one.
//
// append.lock and sync.lock keep their descriptors; see package vfs for what opening them
// for each commit would cost. They are waited for on the shared page first, where there is such a
// thing: releasing one wakes the others, which try for it. flock decides as ever; a wait in it
// costs a thread of its own that hands the lock to a goroutine of another, at every commit. A wait
// of some milliseconds goes on in flock.
//
// # Assumed
//
// Rewriting a sector spares its neighbours. sync means sync. Stores into a
// mapped page are seen by all processes of the machine in order.
package wal
