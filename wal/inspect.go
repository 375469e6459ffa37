package wal

import (
	"bytes"
	"os"
	"path/filepath"

	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal/past"
)

// Functions with which verify and repair read a log. They change no file, take no lock and leave no file open.
// A segment may be recycled while it is read; a caller that finds damage checks whether that is the reason.

// Needs reports whether the history of the log depends on a segment's file: the file belongs to this log, even if its
// beginning is damaged. The file of a recycled segment begins with zeros and is not needed, because its content is in
// the archive or no history is kept. A file that cannot be read is not needed.
func (a Archive) Needs(s SegmentFile) bool {
	if s.Err == nil {
		return true
	}
	if bytes, _ := a.l.o.Archive(); s.Zero && (bytes <= 0 || a.l.archived(s.Number)) {
		return false
	}
	holds, err := a.l.Past().HoldsFrame(s.Number)
	return err == nil && holds
}

// Unsettled reports whether the document files of entries above the position Flushed may have any content. This is so
// after an unclean end, until the first flush has written these files again.
func (n Notes) Unsettled() bool {
	return n.l.private.Load() || n.Distrusted() || n.l.shared.Mapped() && !n.l.shared.Valid(n.l.host)
}

// Slot is one of the two slots of the checkpoint file.
type Slot struct {
	Checkpoint
	Empty bool  // the slot was never written
	Err   error // reason why the slot is invalid
}

// CheckpointSlots reads both slots of the checkpoint file. It also returns the length of the file.
func CheckpointSlots(fsys vfs.FS, dir string) (slots [2]Slot, size int64, err error) {
	f, err := fsys.OpenFile(filepath.Join(dir, "checkpoint"), os.O_RDONLY, 0)
	if err != nil {
		return slots, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return slots, 0, err
	}
	b := make([]byte, 2*slotSize)
	n, err := past.ReadFull(f, b, 0)
	if err != nil {
		return slots, info.Size, err
	}
	for i := range slots {
		part := b[min(n, i*slotSize):min(n, (i+1)*slotSize)]
		slots[i].Empty = len(part) == slotSize && len(bytes.TrimLeft(part, "\x00")) == 0
		slots[i].Checkpoint, slots[i].Err = decodeCheckpoint(part)
		if slots[i].Err == error(errSlot) { // errSlot describes both slots
			slots[i].Err = errOneSlot
		}
	}
	return slots, info.Size, nil
}

// SlotSize is the size of a checkpoint slot in bytes.
const SlotSize = slotSize
