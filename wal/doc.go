// Package wal is the log: an ordered list of entries, durable when acknowledged, that several
// processes on one machine write and read at once. FileLog keeps the log in the folder wal/ of a
// store, and applies the entries to a Machine. An entry is durable before it is applied, read or
// reported as committed, and no entry is inserted before one that any process has already seen. The
// bytes of frames and segments belong to package segment.
//
// # The folder
//
//	wal/00000017.wal   segments; written out in zeros ahead of the tail, recycled when released
//	wal/shared         a mapped page of words: the positions of the log
//	wal/owner          boot id and heartbeat of the processes that use the log
//	wal/*.lock         open attach flush append sync hold, taken in this order; watch is independent;
//	                   follow, of the process that sends the log to a copy elsewhere, is taken before flush
//	wal/features       a copy of the features that checkpoint has; absent until the first is raised
//	wal/ended          why earlier logs of the store have ended; absent until one has ended, see package past
//	wal/sent           position up to which a copy in another place has the log; absent without one, see package past
//	wal/cloned         the store is a clone of a copy elsewhere that it has not taken: it is not opened to write
//	wal/expiry         not part of the log: a time at which something had expired; internal/retention
//	wal/aged           likewise: a time at which a part of the history was older than history_days
//	wal/writers        likewise: explanations of writers whose log segments were released; package writer
//	wal/purges         likewise: names of purged documents whose log segments were released; internal/purgefile
//	wal/purged-texts   likewise: hashes by which purged texts are recognised
//	wal/adopted        likewise: folders elsewhere that are links to folders of notes; internal/note
//	wal/restoring      likewise: folders whose files are being restored; internal/docfile
//	wal/archive/*.zst  copies of released segments
//	checkpoint         two slots, written in turn: which part of the log the store's files cover
//
// # shared
//
// Package page draws the shared page word by word. It has the positions of the log (tail, durable,
// flushed, spilled), what a sync or a recovery has left undone, the last taker of each lock, the
// attached processes with the features that each of them knows, and advice between processes.
//
// # checkpoint
//
// Two slots of 4 KiB. Of the slots whose checksum matches, the one with the higher sequence is
// valid; the other slot is written next.
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
// and, in both versions, what older programs leave out
//
//	160 uint64 inode of the folder wal/ to which the log belongs, as in the page; 0 for none
//	168 uint64 xxhash64 of everything before
//	176 uint64 marks: bit 0: the store has had a config.json
//	184 uint64 xxhash64 of everything before
//
// A mark names a position and the checksum of the last frame before it. Every frame names the
// checksum of its predecessor, so two logs that agree in a mark agree in everything before it.
//
// # Features
//
// The features that a program must know to use a store are a set of bits, type Features: writers
// must know the low 32, writers and readers the high 32. A program that does not know one of the
// low 32 may open the store read-only; otherwise opening is *errs.FeatureError. A program from
// before features existed finds version 2 in a slot and refuses the store as written by a newer
// version; one such slot is enough.
//
// FileLog.Raise adds bits; bits are never removed. They are stored in both slots of the checkpoint,
// and a feature is in force when one of the slots has it; in wal/features, for a recovery that
// finds both slots damaged; and in the page, for attached processes.
//
// To raise FeatureFields, Append calls FileLog.Raise in the goroutine of its caller, before the request
// is queued again. A caller that holds flush.lock appends with the context of Held.In.
//
//	wal/features: 0 "VARVEFEA", 8 uint64 features, 16 uint64 xxhash64 of both
//
// Every process records in shared which features it knows. A raise waits until every process on the
// list of attached processes has recorded that it knows the feature; a process that has recorded
// nothing is from before features existed. A raise holds open.lock, under which processes attach, from the moment
// it reads the list until everything is durable. It writes wal/features, one slot, the other slot,
// the page. If a raise is interrupted after the first of these writes, the next recovery finishes
// it; until then the slots decide whether it took place.
//
// The list has 192 places. While it is full, or while a process that knows of features has no place
// on it, nothing is raised. Two cases remain. An older process that found the list full, and is
// still attached when places become free, is not noticed: it continues to append, but can no longer
// write a checkpoint, so it releases nothing of the log. And if both slots are damaged, a program
// from before features existed opens the store by its segments, as it always did; the next recovery
// by a program that knows wal/features restores the features.
//
// # Writers
//
// An entry of a batch with a Writer has that number as a field of its frame. If the store wrote the entry
// without a request of a caller, the frame also has the reason, its Cause (package segment). The meaning of a
// number is defined above the log: see package writer. The caller of Append raises FeatureWriters, with
// FeatureFields, before the first number; RaiseNow does so without waiting for an older program to end. A log
// without writers has the bytes that it had before writers existed: the features are not raised, and no frame
// has the fields.
//
// # Commit
//
// The goroutines that append wait in a queue; the first one leads. Under append.lock the leader reads
// what other processes have written, evaluates preconditions, writes its group at the tail in one write
// that ends with a header of zeros, and publishes the tail. Under sync.lock the leader syncs the segment,
// unless a sync by another process has covered the group. Then it applies the entries.
//
// FileLog.Exclusive takes append.lock for longer than one write. Its holder appends past the queue;
// the leaders of all processes, its own included, wait until it is released.
//
// Readers see durable entries only. Entries between durable and tail are considered by
// preconditions alone; a refusal because of such an entry is returned once that entry is durable.
//
// # flush.lock
//
// The holder of flush.lock puts files in place and writes the index. Only the holder changes what
// the log and its page record about the files and the index: the checkpoint, the released part of
// the log, and the words of the page for these.
// FileLog.LockFlush returns a Held, the proof that the lock is held. Functions that only the holder
// may call take a Held, here and in the packages above; a Held that was unlocked is refused.
//
// # The types
//
// FileLog has what every user of the log needs. What only some users need is a method of a type that FileLog
// returns, see parts.go: Archive (what is kept beyond the needed segments), Purges, Processes (those that
// have the log open), Folder (whether the log is still where it was opened), Pace, Clock and Notes (what processes
// record for each other). Held is the proof that flush.lock is held, Hold keeps segments for a backup, Lead is the
// one process that watches the files.
//
// # Invariants
//
//   - Bytes before the tail are never changed; at most the same bytes are written again. The holder
//     of append.lock writes after the tail.
//   - durable, flushed and spilled only move up, within one generation.
//   - tail, durable and attested are always at the end of a batch. flushed and spilled may be
//     within a batch, which is durable as a whole by then.
//   - A frame is in the log if it links to the frame before it. What a killed writer left after
//     the tail is not in the log, whatever its contents.
//   - The word syncing of the shared page is set before every sync. A process that finds it set writes the
//     frames from durable to tail again before it syncs: pages of a failed sync look clean.
//   - After a recovery, nothing is served that the recovery did not sync.
//   - A segment is removed one round after the checkpoint that releases it has become durable.
//
// # Torn tail or damage
//
// A position without a valid frame is the torn tail if nothing attests that it was durable: neither
// the checkpoint, nor the shared page of this boot, nor a frame after it. A torn tail is copied to
// quarantine/ and cut. Anything else is damage: the log opens read-only, and nothing after the
// damage is discarded.
//
// # The past
//
// Past reads segments and archive as one log. Each position is read from the segment file first,
// then from its copy in the archive: when a segment is recycled during a read, reading continues in
// the copy. A durable position that is in neither is reported as a hole.
//
// The archive keeps nothing that is damaged: a segment is archived frame by frame, with gaps in place of
// damaged frames, and each gap is reported; see mend.go.
//
// # Copies elsewhere
//
// A program that copies pieces of the log (past.Log.Pieces) to another place records the position up to which that
// copy is complete. Segments that the copy lacks stay in the archive, up to a size limit; see sent.go. Everything
// that begins another log records the reason for that program, with past.Log.Broken; see broken.go.
//
// # Choices
//
// A caller whose sync keeps failing gets an error after Options.LockWait, even if its ctx has no
// deadline: waiting silently for a dead disk is of no use. The outcome is then unknown.
//
// Commit times increase strictly, by at least a microsecond, over the whole log. They become the
// mtimes of the files, so two versions never share an mtime.
//
// So after one commit with the clock years ahead, the times of all later commits are in that future,
// a microsecond apart. Therefore the time that users see is the reading, Entry.Reading: the clock at
// the commit. The reading is the commit time, unless the commit time is more than a second later;
// then the frame has the reading as a field, see package segment. Batches, bursts and ordinary
// corrections of a clock stay within that second: a store whose clock was never set back by more has
// no such field, its frames have the bytes that they had before fields existed, and FeatureFields is
// not raised. The first entry that needs a field raises the feature, before the entry is written: a
// reader that does not know fields would read them as part of the value. A field costs an entry 12
// bytes, padded to 8 or 16.
//
// A write that needs the field neither fails nor waits for an older program to end: while an older program
// has the store open, or the feature cannot be raised for another reason, entries have no reading,
// and their commit time is used instead. The same holds for logs from before fields existed.
//
// A reading is never later than the commit time of its entry. So the first entry whose reading is at
// or after a time (Past.Since) is not before the first entry whose commit time is, which is found by
// the starts of segments. The last entry whose reading is at or before a time (Past.Until) may be
// anywhere: all of the log is read. Order is by position, never by time. The age of archived copies
// is by commit time, which a clock that is behind does not make earlier.
//
// append.lock and sync.lock keep their descriptors; see package vfs for what opening them for each
// commit would cost. If the system supports it, processes first wait for them on the shared
// page: releasing a lock wakes the waiting processes, which then try to take it. flock remains
// authoritative. A wait inside flock costs a separate thread that hands the lock to a goroutine on
// another thread, at every commit; so only a wait of more than some milliseconds continues in
// flock.
//
// # Assumed
//
// Rewriting a sector leaves its neighbours intact. A sync that returns without an error has reached
// the medium. All processes of the machine see stores into a mapped page in order.
package wal
