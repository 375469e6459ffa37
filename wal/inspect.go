package wal

import (
	"bytes"
	"os"
	"path/filepath"

	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal/past"
)

// What verify and repair read of a log. Nothing here changes a file or takes a
// lock, and no file stays open: a segment may be recycled while it is read, and a caller that finds
// something wrong checks whether that is why.

// Needs reports whether history needs a segment's file: it is one of this log, also where its beginning
// is damaged. A segment that is recycled begins with zeros too, but its copy is in the archive then,
// or no history is kept. One that cannot be read holds nothing.
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

// Unsettled reports that files above flushed may contain anything, until the first flush after an
// unclean end has written them again.
func (n Notes) Unsettled() bool {
	return n.l.private.Load() || n.Distrusted() || n.l.shared.Mapped() && !n.l.shared.Valid(n.l.host)
}

// Slot is one of the two places of a checkpoint.
type Slot struct {
	Checkpoint
	Empty bool  // never written
	Err   error // the slot does not verify
}

// CheckpointSlots reads both slots and the length of the file.
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
		if slots[i].Err == error(errSlot) { // which is of both
			slots[i].Err = errOneSlot
		}
	}
	return slots, info.Size, nil
}

// SlotSize is the length of a checkpoint's slot in its file.
const SlotSize = slotSize
