package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cespare/xxhash/v2"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

// Folders is the number of the store's folders whose modification times a checkpoint records.
const Folders = 4

// Checkpoint records up to which positions of the log the store's files and its index are complete, and other facts
// about these files. It is stored in the file checkpoint, not in the log.
type Checkpoint struct {
	Sequence    uint64
	UUID        [16]byte
	SegmentSize uint64
	Flushed     Mark  // below this mark the JSON files are authoritative
	Spilled     Mark  // below this mark the index is authoritative
	Attested    Mark  // below this mark the log was durable: an invalid frame there is damage
	Time        int64 // commit time of the newest commit, in Unix microseconds
	// Modification times of the folders after the store's own last change, in Unix nanoseconds. For a folder
	// that was changed from outside, the previous value stays until the folder is compared.
	Mtimes   [Folders]int64
	Features Features // features of the store; readCheckpoint returns the features of both slots
	Home     uint64   // inode of the folder wal/ that is the home of the log, 0 if none is recorded
	// The store has had a config.json: if the file is missing, the settings are unknown and are not the
	// defaults.
	Config bool
}

const (
	checkpointMagic = "VARVECHK"

	// checkpointPlain is the format version of a checkpoint slot in a store without features (see Features). A slot of
	// version 2 begins with the same bytes and the same checksum, so a program that knows only version 1 reports a
	// newer format. Otherwise such a program would find the slot invalid and rebuild the checkpoint from the segments.
	checkpointPlain = 1
	// CheckpointFormat is the highest format version of a checkpoint slot that this package writes and reads.
	CheckpointFormat = 2

	slotSize  = 4096
	slotUsed  = 8 + 4 + 4 + 8 + 16 + 8 + 3*16 + Folders*8 + 8
	slotMore  = slotUsed + 8 + 8 // offset of the end of the features
	slotHome  = 160              // offset of the home inode, which older programs omit
	slotMarks = slotHome + 16    // offset of the mark bits, which older programs omit

	markConfig = 1 << 0 // mark bit of Checkpoint.Config
)

func (c *Checkpoint) encode() []byte {
	b := make([]byte, 0, slotSize)
	le := binary.LittleEndian
	b = append(b, checkpointMagic...)
	version := uint32(checkpointPlain)
	if c.Features != 0 {
		version = CheckpointFormat
	}
	b = le.AppendUint32(b, version)
	b = le.AppendUint32(b, 0)
	b = le.AppendUint64(b, c.Sequence)
	b = append(b, c.UUID[:]...)
	b = le.AppendUint64(b, c.SegmentSize)
	for _, m := range []Mark{c.Flushed, c.Spilled, c.Attested} {
		b = le.AppendUint64(b, m.LSN)
		b = le.AppendUint64(b, m.Sum)
	}
	for _, t := range c.Mtimes {
		b = le.AppendUint64(b, uint64(t))
	}
	b = le.AppendUint64(b, uint64(c.Time))
	b = le.AppendUint64(b, xxhash.Sum64(b))
	if version != checkpointPlain {
		b = le.AppendUint64(b, uint64(c.Features))
		b = le.AppendUint64(b, xxhash.Sum64(b))
	}
	if c.Home != 0 {
		b = le.AppendUint64(b[:slotHome], c.Home)
		b = le.AppendUint64(b, xxhash.Sum64(b))
	}
	if c.Config {
		b = le.AppendUint64(b[:slotMarks], markConfig)
		b = le.AppendUint64(b, xxhash.Sum64(b))
	}
	return b[:slotSize]
}

// errSlot means that both slots of the checkpoint are invalid, or that the checkpoint file is missing.
var errSlot = &errs.CorruptionError{Path: "checkpoint", Offset: -1,
	Err: errors.New("neither of the two slots of the checkpoint is valid: close the store in all processes, then " +
		"open the store to rebuild the checkpoint from the log")}

// errOneSlot means that one slot of the checkpoint is invalid. The other slot may be valid or not.
var errOneSlot = &errs.CorruptionError{Path: "checkpoint", Offset: -1,
	Err: errors.New("a slot of the checkpoint is invalid")}

func decodeCheckpoint(b []byte) (Checkpoint, error) {
	le := binary.LittleEndian
	if len(b) < slotUsed+8 || string(b[:8]) != checkpointMagic || xxhash.Sum64(b[:slotUsed]) != le.Uint64(b[slotUsed:]) {
		return Checkpoint{}, errSlot
	}
	v := le.Uint32(b[8:])
	if v > CheckpointFormat {
		return Checkpoint{}, &errs.NewerError{Path: "checkpoint", Format: uint64(v), Reads: CheckpointFormat}
	}
	c := Checkpoint{Sequence: le.Uint64(b[16:]), SegmentSize: le.Uint64(b[40:])}
	if v > checkpointPlain {
		if len(b) < slotMore+8 || xxhash.Sum64(b[:slotMore]) != le.Uint64(b[slotMore:]) {
			return Checkpoint{}, errSlot
		}
		c.Features = Features(le.Uint64(b[slotUsed+8:]))
	}
	if len(b) >= slotHome+16 && xxhash.Sum64(b[:slotHome+8]) == le.Uint64(b[slotHome+8:]) {
		c.Home = le.Uint64(b[slotHome:]) // a slot of an older program has zeros here, which do not match
	}
	if len(b) >= slotMarks+16 && xxhash.Sum64(b[:slotMarks+8]) == le.Uint64(b[slotMarks+8:]) {
		c.Config = le.Uint64(b[slotMarks:])&markConfig != 0
	}
	copy(c.UUID[:], b[24:40])
	at := 48
	for _, m := range []*Mark{&c.Flushed, &c.Spilled, &c.Attested} {
		m.LSN, m.Sum = le.Uint64(b[at:]), le.Uint64(b[at+8:])
		at += 16
	}
	for i := range c.Mtimes {
		c.Mtimes[i] = int64(le.Uint64(b[at:]))
		at += 8
	}
	c.Time = int64(le.Uint64(b[at:]))
	if err := c.check(); err != nil {
		return Checkpoint{}, &errs.CorruptionError{Path: "checkpoint", Offset: -1, Err: err}
	}
	return c, nil
}

// check returns an error for values that no program writes. A slot with such values is damaged, even if its checksum is
// right. Flushed and Spilled are 0 if the log has not begun yet; see BeginAbove.
func (c *Checkpoint) check() error {
	geo := segment.Geometry{UUID: c.UUID, Size: c.SegmentSize}
	if !geo.Valid() {
		return fmt.Errorf("the slot has an invalid segment size of %d bytes", c.SegmentSize)
	}
	begun := c.Flushed.LSN != 0 || c.Spilled.LSN != 0
	for _, m := range []struct {
		name string
		at   LSN
	}{{"spilled", c.Spilled.LSN}, {"flushed", c.Flushed.LSN}, {"attested", c.Attested.LSN}} {
		if begun && !geo.Holds(m.at) {
			return fmt.Errorf("the mark %s has the invalid position %d: no frame can end there", m.name, m.at)
		}
	}
	switch {
	case c.Spilled.LSN > c.Flushed.LSN || c.Flushed.LSN > c.Attested.LSN:
		return fmt.Errorf("the positions of the marks are not in ascending order: spilled %d, flushed %d, attested %d",
			c.Spilled.LSN, c.Flushed.LSN,
			c.Attested.LSN)
	case c.Attested.LSN == 0 || geo.Number(c.Attested.LSN) > segment.MaxNumber/2: // a repair begins a new log above it
		return fmt.Errorf("the mark attested has the invalid position %d, which is beyond the end of any log",
			c.Attested.LSN)
	case c.Time > past.MostTime:
		return fmt.Errorf("the time of the newest commit is invalid: %d microseconds since 1970", c.Time)
	}
	return nil
}

// ReadCheckpoint returns the newest checkpoint of the store in dir. The log need not be open.
func ReadCheckpoint(fsys vfs.FS, dir string) (Checkpoint, error) { return readCheckpoint(fsys, dir) }

// readCheckpoint returns the newer one of the checkpoint's two slots, or errSlot if neither is valid. It returns the
// features of both slots together. So a feature counts even if the process that raised it was interrupted after it had
// written only one slot.
func readCheckpoint(fsys vfs.FS, dir string) (Checkpoint, error) {
	f, err := fsys.OpenFile(filepath.Join(dir, "checkpoint"), os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return Checkpoint{}, errSlot
	}
	if err != nil {
		return Checkpoint{}, err
	}
	defer f.Close()
	best, found := Checkpoint{}, false
	var features Features
	b := make([]byte, 2*slotSize)
	n, err := past.ReadFull(f, b, 0)
	if err != nil {
		return Checkpoint{}, err
	}
	for at := 0; at+slotSize <= n; at += slotSize {
		c, err := decodeCheckpoint(b[at : at+slotSize])
		if errors.Is(err, errs.ErrNewerFormat) {
			return Checkpoint{}, err
		}
		// A slot that is invalid is ignored; CheckpointSlots reports why.
		if err == nil {
			features |= c.Features
		}
		if err == nil && (!found || c.Sequence > best.Sequence) {
			best, found = c, true
		}
	}
	if !found {
		return Checkpoint{}, errSlot
	}
	best.Features = features
	return best, nil
}

// writeCheckpoint writes c into the slot that does not have the current checkpoint, and syncs it. c.Sequence must be
// one higher than that of the current checkpoint: it selects the slot, so the current slot is not changed.
func writeCheckpoint(fsys vfs.FS, dir string, c Checkpoint, mode fs.FileMode) error {
	path := filepath.Join(dir, "checkpoint")
	f, err := fsys.OpenFile(path, os.O_RDWR, mode)
	created := errors.Is(err, fs.ErrNotExist)
	if created {
		f, err = fsys.OpenFile(path, os.O_RDWR|os.O_CREATE, mode)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if created {
		if _, err := f.WriteAt(make([]byte, 2*slotSize), 0); err != nil {
			return err
		}
	}
	if _, err := f.WriteAt(c.encode(), int64(c.Sequence%2)*slotSize); err != nil {
		return err
	}
	if created {
		if err := f.Sync(); err != nil {
			return err
		}
		return fsys.SyncDir(dir)
	}
	return f.Datasync()
}

// BeginAbove records, in a folder that has no log, that a new log must begin above pos. So no position has one
// meaning in an earlier log of the store and another one in the new log. The new log has the given features from
// the beginning.
func BeginAbove(fsys vfs.FS, dir string, pos LSN, geo segment.Geometry, features Features, mode fs.FileMode) error {
	c := Checkpoint{Sequence: 1, UUID: geo.UUID, SegmentSize: geo.Size, Attested: Mark{LSN: pos}, Features: features}
	return writeCheckpoint(fsys, dir, c, mode)
}
