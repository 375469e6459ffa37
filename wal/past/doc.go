// Package past reads a log back: from the segments in wal/, and from the copies in wal/archive/ of those
// that were recycled. Log is the past of one log; it takes no lock, keeps no file open between two calls,
// and needs no FileLog, so it works beside writers, in a process that has the log open and in one that has
// not. The package also owns the format of an archived segment, drawn in archive.go; package wal decides
// when segments are archived and when copies are removed.
//
// # Where a position is read
//
// Each position is read from the segment file first, then from its copy: when a segment is recycled
// during a read, reading continues in the copy, which is durable before the recycling begins. A position
// below the limit that is in neither is an error, never the end.
//
// # Pieces
//
// Log.Pieces returns the log as raw bytes. A piece lies in one segment and consists of whole batches,
// byte for byte as they are in the file or the copy; the start frame of the segment precedes them where
// the piece is the first of the segment. Frames whose payload a purge has erased are included as they
// are. The frames of a batch never straddle two segments, so neither does a piece. The zeros behind the
// last frame are not in it.
//
// A gap is an error of type *GapError: a segment that was pruned, damage, or frames of kind 3, with which
// a repair has filled a hole. It names the position from which the log continues. A piece never spans a
// gap, and the piece behind a gap has the mark at which its own frames begin.
//
// The package is called by wal and by the packages above it; it calls package segment and package vfs.
package past
