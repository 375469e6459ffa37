package forge

import (
	"encoding/binary"
	"errors"
	"path/filepath"

	"github.com/cespare/xxhash/v2"

	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
)

// SlotSize is the length of one of a checkpoint's two slots.
const SlotSize = 4096

const (
	slotUsed = 136 // bytes of a slot before its checksum
	slotMore = 152 // bytes in version 2, where the checksum of all of them follows
)

// Mark is a position in the log and the checksum of the frame that ends there.
type Mark struct {
	LSN segment.LSN
	Sum uint64
}

// Slot is the content of a slot of a checkpoint; package wal defines the format.
type Slot struct {
	Version                    uint32
	Sequence                   uint64
	UUID                       [16]byte
	SegmentSize                uint64
	Flushed, Spilled, Attested Mark
	Mtimes                     [4]int64
	Time                       int64
	Features                   uint64 // only in version 2 and later
}

// ParseSlot parses a slot, even if its checksum is wrong.
func ParseSlot(b []byte) (s Slot) {
	le := binary.LittleEndian
	s.Version, s.Sequence, s.SegmentSize = le.Uint32(b[8:]), le.Uint64(b[16:]), le.Uint64(b[40:])
	copy(s.UUID[:], b[24:])
	for i, m := range []*Mark{&s.Flushed, &s.Spilled, &s.Attested} {
		m.LSN, m.Sum = le.Uint64(b[48+16*i:]), le.Uint64(b[56+16*i:])
	}
	for i := range s.Mtimes {
		s.Mtimes[i] = int64(le.Uint64(b[96+8*i:]))
	}
	s.Time = int64(le.Uint64(b[128:]))
	if s.Version > 1 && len(b) >= slotMore {
		s.Features = le.Uint64(b[144:])
	}
	return s
}

// Encode returns the bytes of the slot, with a valid checksum.
func (s Slot) Encode() []byte {
	b := make([]byte, SlotSize)
	le := binary.LittleEndian
	copy(b, "VARVECHK")
	le.PutUint32(b[8:], s.Version)
	le.PutUint64(b[16:], s.Sequence)
	copy(b[24:], s.UUID[:])
	le.PutUint64(b[40:], s.SegmentSize)
	for i, m := range []Mark{s.Flushed, s.Spilled, s.Attested} {
		le.PutUint64(b[48+16*i:], m.LSN)
		le.PutUint64(b[56+16*i:], m.Sum)
	}
	for i, t := range s.Mtimes {
		le.PutUint64(b[96+8*i:], uint64(t))
	}
	le.PutUint64(b[128:], uint64(s.Time))
	if s.Version > 1 {
		le.PutUint64(b[144:], s.Features)
	}
	SealSlot(b)
	return b
}

// SealSlot recomputes the checksum of a slot.
func SealSlot(b []byte) {
	if len(b) >= slotUsed+8 {
		binary.LittleEndian.PutUint64(b[slotUsed:], xxhash.Sum64(b[:slotUsed]))
	}
	if len(b) >= slotMore+8 && binary.LittleEndian.Uint32(b[8:]) > 1 {
		binary.LittleEndian.PutUint64(b[slotMore:], xxhash.Sum64(b[:slotMore]))
	}
}

// slots returns the two slots of a store's checkpoint; ok is false for a slot whose checksum is wrong.
func slots(fsys vfs.FS, dir string) (list [2]Slot, ok [2]bool, err error) {
	b, err := readUpTo(fsys, filepath.Join(dir, "checkpoint"), 2*SlotSize)
	if err != nil {
		return list, ok, err
	}
	for i := range list {
		if len(b) < i*SlotSize+slotUsed+8 {
			continue
		}
		slot := b[i*SlotSize:]
		list[i] = ParseSlot(slot)
		ok[i] = xxhash.Sum64(slot[:slotUsed]) == binary.LittleEndian.Uint64(slot[slotUsed:])
	}
	return list, ok, nil
}

// Newest returns the newer slot of a store's checkpoint.
func Newest(fsys vfs.FS, dir string) (Slot, error) {
	list, ok, err := slots(fsys, dir)
	switch {
	case err != nil:
		return Slot{}, err
	case ok[0] && (!ok[1] || list[0].Sequence > list[1].Sequence):
		return list[0], nil
	case ok[1]:
		return list[1], nil
	}
	return Slot{}, errors.New("no slot of the checkpoint has a valid checksum")
}

// Checkpoint changes the content of both slots of a store's checkpoint, and gives them valid checksums.
func Checkpoint(fsys vfs.FS, dir string, change func(*Slot)) error {
	list, ok, err := slots(fsys, dir)
	for i, s := range list {
		if err != nil {
			return err
		}
		if ok[i] {
			change(&s)
			err = WriteAt(fsys, filepath.Join(dir, "checkpoint"), s.Encode(), int64(i)*SlotSize)
		}
	}
	return err
}
