// Package past reads a log back: from the segments in wal/, and from the copies in wal/archive/ of segments
// that were recycled. Log is the past of one log; it takes no lock, keeps no file open between two calls,
// and needs no FileLog, so it works concurrently with writers, in a process that has the log open and in one
// that has not. The package also owns the format of an archived segment, drawn in archive.go; package wal
// decides when segments are archived and when copies are removed.
//
// # Where a position is read
//
// Each position is read from the segment file first, then from its copy: when a segment is recycled
// during a read, reading continues in the copy, which is durable before the recycling begins. A position
// below the limit that is in neither is an error, never the end.
//
// # Pieces
//
// Log.Pieces returns the log as raw bytes. A piece is in one segment and consists of whole batches,
// byte for byte as they are in the file or the copy; the first piece of a segment begins with the start
// frame of the segment. Frames whose payload a purge has erased are included as they are. The frames of a
// batch never straddle two segments, so neither does a piece. The zeros after the last frame are not
// included.
//
// A gap is an error of type *GapError: a segment that was pruned, damage, or frames of kind 3, with which
// a repair has filled a hole. It names the position from which the log continues. A piece never spans a
// gap, and the piece after a gap has the mark at which its own frames begin.
//
// # The end of a log
//
// A copy of the log in another place, made of pieces, can continue only as long as the log is the same one. Everything
// that begins another log calls Log.Broken with a reason before the first segment of that log exists: the process that
// opens a restored store (Restored) or a store whose segments are missing (FilesLost), and a repair (Repaired). A
// complete purge calls Log.Broken, too (Purged), because the copy still contains the purged data. The records are in
// wal/ended; ended.go draws the file. Each record begins a new epoch of the store. The store's UUID and the epoch are
// the ID of a log.
//
// A reader keeps the ID and the mark up to which it has the log. Log.Continues compares the ID and the mark with the
// log, when the reader begins and after it was away; Log.Pieces compares only the mark. If they differ, the error of
// these functions is an *EndedError, which has the reason. If files were replaced from outside, by an older state of
// the same folder for example, nothing is recorded, and the chain hash of the mark shows that this is another log
// (Unknown).
//
// # What was sent
//
// Log.SetSent records in wal/sent the mark up to which a copy in another place has the log; sent.go draws the
// file. The segments after the mark are not removed, up to a size limit: package wal enforces that (sent.go
// there). Log.Sent returns the mark, and the reason if the copy cannot continue.
//
// Both files are untrusted input: a file that does not match its checksum, belongs to another store, or contains what
// no program writes, is damaged. A store may have neither.
//
// The package is called by wal and by the packages above it; it calls package segment and package vfs.
package past
