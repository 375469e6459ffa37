// Package forge signs what a stranger might put into a store: frames of the log and
// checkpoints that say anything at all under checksums that are right. Only tests
// import it.
//
// What a store's files say is input, also when its checksum matches: none of the checksums is
// keyed, so anyone able to write a file can compute them. A test that flips bytes and leaves the
// checksum wrong reaches nothing behind it.
//
//	l, err := forge.Open(vfs.OS(), dir)           // the end of a store's log that is closed
//	at := l.End()                                 // the LSN of the next frame
//	l.Append(forge.Frame{Key: "mx", Value: v})    // signed, linked to the frame before it
//	err = l.Save()
//
//	err = forge.Checkpoint(vfs.OS(), dir, func(s *forge.Slot) { s.SegmentSize = 0 })
//
// SealSegment, SealSlot and SealTable compute the checksums of bytes again that a fuzzer
// has changed. The formats belong to packages segment, wal and index/table, which draw
// them.
package forge
