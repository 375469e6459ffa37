package verify

import (
	"fmt"

	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/wal"
)

// checkpoint verifies both slots of the checkpoint file. It reads a slot with a wrong checksum again, because a
// process may be writing it.
func (v *Run) checkpoint() error {
	var slots [2]wal.Slot
	var size int64
	var err error
	bad := func(s wal.Slot) bool { return s.Err != nil && !s.Empty }
	for range tries {
		slots, size, err = wal.CheckpointSlots(v.Source.FS, v.Source.Dir)
		if err == nil && !bad(slots[0]) && !bad(slots[1]) {
			break
		}
	}
	f := repair.Finding{
		Kind: repair.CheckpointSlot, Severity: repair.Healable, Path: "checkpoint", Offset: -1, Err: err,
		Stake: "the position at which recovery begins; the other slot of the checkpoint is valid",
		Heals: repair.ByCheckpoint, Next: repair.NextRepair,
	}
	if err != nil {
		f.Stake, f.Heals, f.Next = "the position at which recovery begins", repair.ByLog, repair.NextRepair
		return v.report(f)
	}
	best := -1
	for i, s := range slots {
		if s.Err == nil && (best < 0 || s.Sequence > slots[best].Sequence) {
			best = i
		}
	}
	for i, s := range slots {
		if !bad(s) {
			continue
		}
		f.Offset, f.Err = int64(i)*wal.SlotSize, s.Err
		if best < 0 {
			f.Stake, f.Heals, f.Next = "the position at which recovery begins", repair.ByLog, repair.NextRepair
		}
		if err := v.report(f); err != nil {
			return err
		}
	}
	if best >= 0 {
		c := slots[best]
		v.marks = []wal.Mark{c.Flushed, c.Spilled, c.Attested}
		if c.UUID != v.Source.Log.UUID() || c.SegmentSize != v.Source.Log.SegmentSize() {
			f.Remarks |= repair.OtherLog
			f.Stake = "the position at which recovery begins"
			f.Offset, f.Err = int64(best)*wal.SlotSize,
				fmt.Errorf("the checkpoint belongs to another log (%x, segments of %d bytes), not to this one (%x, "+
					"segments of %d bytes)", c.UUID, c.SegmentSize, v.Source.Log.UUID(), v.Source.Log.SegmentSize())
			return v.report(f)
		}
	}
	if size != 2*wal.SlotSize {
		f.Offset, f.Err = size, fmt.Errorf("the file has %d bytes, not %d", size, 2*wal.SlotSize)
		if best >= 0 && !bad(slots[0]) && !bad(slots[1]) {
			return v.report(f)
		}
	}
	return nil
}
