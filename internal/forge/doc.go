// Package forge makes content that an attacker might put into a store: frames of the log and
// checkpoints with arbitrary contents and valid checksums. Only tests import it.
//
// The contents of a store's files are input, even if the checksums match: no checksum is keyed, so
// anyone able to write a file can compute them. A test that flips bytes and leaves the checksum
// wrong reaches no code behind the check.
//
//	l, err := forge.Open(vfs.OS(), dir)           // the end of the log of a closed store
//	at := l.End()                                 // the LSN of the next frame
//	l.Append(forge.Frame{Key: "mx", Value: v})    // signed, linked to the frame before it
//	err = l.Save()
//
//	err = forge.Checkpoint(vfs.OS(), dir, func(s *forge.Slot) { s.SegmentSize = 0 })
//
// SealSegment, SealSlot and SealTable recompute the checksums of bytes that a fuzzer has changed.
// The packages segment, wal and index/table define the formats.
package forge
