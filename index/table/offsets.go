package table

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math/bits"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/yield"
)

// The file with the offsets of a table: see the package comment.
const (
	offsetsMagic  = "VARVEOFF"
	offsetsFormat = 1
	offsetsBlock  = 4096
	offsetsSlots  = offsetsBlock/8 - 1   // the last 8 bytes of a block are its checksum
	offsetsFill   = offsetsSlots * 3 / 4 // average number of slots in use
	tagBits       = 24
	mostPosition  = 1 << (64 - tagBits)
	offsetsTries  = 4 // how often a file with more blocks is tried if a block is full

	// offsets in bytes of the fields in the header of the file
	headFormat, headBlocks, headCount, headTable, headSum = 8, 16, 24, 32, 80
)

var (
	errOffsetsHead  = errors.New("not a file of offsets")
	errOffsetsBlock = errors.New("checksum mismatch in a block of the offsets")
	errOffsetsTotal = errors.New("too many keys belong to one block of the offsets")
)

// offsets is an open offsets file. Such a file maps the hash of each key of a table to the position of the key's line,
// so that a look-up need not search the table. See the package comment.
type offsets struct {
	name    string
	mapping vfs.Mapping
	data    []byte // the blocks, without the header
	blocks  uint64
	count   uint64
	seen    []atomic.Uint64 // bit set of the blocks that were verified
	bad     atomic.Bool     // a block is damaged: the table is searched
	damaged func(path string, err error)
}

// hashKey returns the hash of an encoded key in a section.
func hashKey(sec int, k []byte) uint64 {
	return xxhash.Sum64(k) ^ uint64(sec)*0x9e3779b97f4a7c15
}

// slotOf returns the block of a hash, the slot at which the search in the block begins, and the tag in the slot.
func slotOf(h, blocks uint64) (block uint64, slot int, tag uint64) {
	block, _ = bits.Mul64(h, blocks)
	return block, int((h >> tagBits & 0xffff) * offsetsSlots >> 16), h & (1<<tagBits - 1)
}

// blockSum returns the checksum of a block. It depends on the number of the block, so exchanged blocks are detected.
func blockSum(b []byte, block uint64) uint64 {
	return xxhash.Sum64(b[:offsetsSlots*8]) ^ (block+1)*0x9e3779b97f4a7c15
}

// OffsetsDue reports whether an offsets file should be written for the table: the table is large enough for one, and
// no offsets file is open or the open one is damaged.
func (t *Table) OffsetsDue() bool {
	if t.sch.Offsets == "" || t.Size() < t.sch.OffsetsFrom || t.Size() >= mostPosition {
		return false
	}
	o := t.offsets.Load()
	return o == nil || o.bad.Load()
}

// OffsetsDue reports whether an offsets file should be written for the base or the delta; see Table.OffsetsDue.
func (s *Set) OffsetsDue() bool {
	return s.base != nil && s.base.OffsetsDue() || s.delta != nil && s.delta.OffsetsDue()
}

// OffsetsName returns the name of the table's offsets file, relative to the folder of the table. It returns "" if the
// table is too small for an offsets file.
func (t *Table) OffsetsName() string {
	if t.sch.Offsets == "" || t.Size() < t.sch.OffsetsFrom {
		return ""
	}
	return t.sch.offsetsOf(t.name)
}

func (s *Schema) offsetsOf(table string) string {
	if table == s.Delta() {
		return s.Offsets + ".delta"
	}
	return s.Offsets
}

// openOffsets maps the offsets file of a table, if none is open or the open one is damaged. If the file is missing,
// belongs to other content of the table or has a newer format, look-ups search the table; this is not an error. If the
// header of the file is damaged, openOffsets calls damaged, which may be nil.
func (t *Table) openOffsets(fsys vfs.FS, dir string, damaged func(path string, err error)) {
	old := t.offsets.Load()
	if t.sch.Offsets == "" || t.Size() < t.sch.OffsetsFrom || old != nil && !old.bad.Load() {
		return
	}
	o, err := readOffsets(fsys, dir, t)
	switch {
	case errors.Is(err, errs.ErrCorrupt) && damaged != nil:
		damaged(t.sch.offsetsOf(t.name), err)
	case o != nil:
		o.damaged = damaged
		switch {
		case !t.offsets.CompareAndSwap(old, o):
			_ = o.mapping.Close()
		case old != nil:
			t.replacing.Lock()
			t.replaced = append(t.replaced, old)
			t.replacing.Unlock()
		}
	}
}

// readOffsets maps the offsets file of a table and verifies its header. It returns nil without an error if the file is
// missing or was made for other content of the table.
func readOffsets(fsys vfs.FS, dir string, t *Table) (*offsets, error) {
	name := t.sch.offsetsOf(t.name)
	f, err := fsys.OpenFile(filepath.Join(dir, filepath.FromSlash(name)), os.O_RDONLY, 0)
	if err != nil {
		if missing(err) {
			err = nil
		}
		return nil, err
	}
	m, err := f.Map()
	if cerr := f.Close(); err == nil && cerr != nil {
		_ = m.Close()
		err = cerr
	}
	if err != nil {
		return nil, err
	}
	o := &offsets{name: name, mapping: m}
	ours := false
	err = vfs.GuardFile(name, func() (err error) {
		ours, err = o.readHead(m.Bytes(), t)
		return err
	})
	if err != nil || !ours {
		return nil, errors.Join(err, m.Close())
	}
	return o, nil
}

// readHead verifies the header of the offsets file, whose content is b. ours is true if the file was made for the
// present content of the table.
func (o *offsets) readHead(b []byte, t *Table) (ours bool, err error) {
	if len(b) < offsetsBlock || string(b[:len(offsetsMagic)]) != offsetsMagic ||
		binary.LittleEndian.Uint64(b[headSum:]) != xxhash.Sum64(b[:headSum]) {
		return false, o.fault(0, errOffsetsHead)
	}
	if binary.LittleEndian.Uint64(b[headFormat:]) != offsetsFormat ||
		!bytes.Equal(b[headTable:headTable+endWidth], t.end[:]) {
		return false, nil
	}
	o.blocks, o.count = binary.LittleEndian.Uint64(b[headBlocks:]), binary.LittleEndian.Uint64(b[headCount:])
	o.data = b[offsetsBlock:]
	if o.blocks == 0 || o.blocks > uint64(len(o.data)) || uint64(len(o.data)) != o.blocks*offsetsBlock {
		return false, o.fault(0, fmt.Errorf("the file has %d bytes, which is not the size of %d blocks", len(b),
			o.blocks))
	}
	o.seen = make([]atomic.Uint64, (o.blocks+63)/64)
	return true, nil
}

func (o *offsets) fault(off int64, err error) error {
	return &errs.CorruptionError{Path: o.name, Offset: off, Err: err}
}

// block returns block n of the offsets file. It verifies the checksum of the block, unless an earlier call has
// verified this block.
func (o *offsets) block(n uint64) ([]byte, error) {
	b := o.data[n*offsetsBlock:][:offsetsBlock]
	bit := uint64(1) << (n & 63)
	if o.seen[n>>6].Load()&bit != 0 {
		return b, nil
	}
	if binary.LittleEndian.Uint64(b[offsetsSlots*8:]) != blockSum(b, n) {
		return nil, o.fault(int64((n+1)*offsetsBlock), errOffsetsBlock)
	}
	o.seen[n>>6].Or(bit)
	return b, nil
}

// at returns the bounds of the line with the encoded key k in section sec of the table. start equals end if the
// section lacks the key. If ofTable is true, the error is about the table, otherwise about the offsets file.
func (o *offsets) at(t *Table, sec int, k []byte) (f found, ofTable bool, err error) {
	n, slot, tag := slotOf(hashKey(sec, k), o.blocks)
	b, err := o.block(n)
	if err != nil {
		return f, false, err
	}
	span := &t.sections[sec]
	for range offsetsSlots {
		v := binary.LittleEndian.Uint64(b[slot*8:])
		if v == 0 {
			return f, false, nil
		}
		if v>>(64-tagBits) == tag {
			pos := int(v & (mostPosition - 1))
			if pos >= t.body {
				return f, false, o.fault(int64((n+1)*offsetsBlock), errOffsetsBlock)
			}
			if pos >= int(span.start) && pos < int(span.end) {
				if err := t.touch(pos / blockSize); err != nil {
					return f, true, err
				}
				end, err := t.lineEnd(pos, pos, int(span.end))
				if err != nil {
					return f, true, err
				}
				f.probes++
				if order, _ := compareLine(t.data[pos+1:end], k); order == 0 {
					f.start, f.end = pos, end
					return f, false, nil
				}
			}
		}
		if slot++; slot == offsetsSlots {
			slot = 0
		}
	}
	return f, false, nil
}

// findByOffset looks up the encoded key k of section sec with the table's offsets file. known is false if the table
// has no usable offsets file; the caller must then search the table.
func (t *Table) findByOffset(sec int, k []byte) (f found, known bool, err error) {
	o := t.offsets.Load()
	if o == nil || !t.sch.Sections[sec].Offsets || o.bad.Load() {
		return f, false, nil
	}
	ofTable := false
	err = vfs.GuardFile(o.name, func() (err error) {
		f, ofTable, err = o.at(t, sec, k)
		return err
	})
	if err == nil || ofTable {
		return f, true, err
	}
	if !o.bad.Swap(true) && o.damaged != nil {
		o.damaged(o.name, err)
	}
	return found{}, false, nil
}

// CheckOffsets reads the offsets files that the folder has now for the tables of the set, and yields the first error
// of each file: a damaged block, or a line that cannot be found with the file. After such an error, look-ups of the
// set search the table instead. A missing offsets file, and one that was made for other content of the table, is not
// an error.
func (s *Set) CheckOffsets(fsys vfs.FS, dir string) iter.Seq[error] {
	return func(yield func(error) bool) {
		for _, t := range []*Table{s.base, s.delta} {
			if t == nil || t.OffsetsName() == "" {
				continue
			}
			o, err := readOffsets(fsys, dir, t)
			if o != nil {
				err = errors.Join(vfs.GuardFile(o.name, func() error { return o.check(t) }), o.mapping.Close())
			}
			if !errors.Is(err, errs.ErrCorrupt) {
				continue // a file that cannot be read now is not used
			}
			if used := t.offsets.Load(); used != nil {
				used.bad.Store(true)
			}
			if !yield(err) {
				return
			}
		}
	}
}

// check verifies all blocks of the offsets file, and that the file leads to each line of the table.
func (o *offsets) check(t *Table) error {
	for n := range o.blocks {
		if _, err := o.block(n); err != nil {
			return err
		}
	}
	count := uint64(0)
	for sec := range t.sections {
		if !t.sch.Sections[sec].Offsets {
			continue
		}
		err := t.eachKey(sec, func(pos int, k []byte) error {
			count++
			if f, _, err := o.at(t, sec, k); err != nil || f.start != pos {
				return o.fault(-1, fmt.Errorf("the offsets do not lead to the line at %d of %s", pos, t.name))
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if count != o.count {
		return o.fault(-1, fmt.Errorf("there are offsets of %d lines, but %s has %d", o.count, t.name, count))
	}
	return nil
}

// eachKey calls f with the position and the encoded key of each line of a section.
func (t *Table) eachKey(sec int, f func(pos int, k []byte) error) error {
	at, end := int(t.sections[sec].start), int(t.sections[sec].end)
	for at < end {
		line := t.data[at:end]
		n := bytes.IndexByte(line, '\n')
		if n < minLine-1 || line[0] != '"' {
			return t.damaged(int64(at), errLine)
		}
		key := keyEnd(line[1 : n+1])
		if key < 0 {
			return t.damaged(int64(at), errLine)
		}
		if err := f(at, line[1:1+key]); err != nil {
			return err
		}
		at += n + 1
	}
	return nil
}

// buildOffsets returns the content of the table's offsets file.
func (t *Table) buildOffsets() ([]byte, error) {
	lines := int64(0)
	for sec, s := range t.sections {
		if t.sch.Sections[sec].Offsets {
			lines += s.lines
		}
	}
	blocks := uint64(lines)/offsetsFill + 1
	for range offsetsTries {
		b := make([]byte, (blocks+1)*offsetsBlock)
		err := t.guard(func() error { return t.fillOffsets(b, blocks, uint64(lines)) })
		if !errors.Is(err, errOffsetsTotal) {
			return b, err
		}
		blocks += blocks/8 + 1
	}
	return nil, errOffsetsTotal
}

func (t *Table) fillOffsets(b []byte, blocks, lines uint64) error {
	used := make([]uint16, blocks)
	var turns yield.Turns
	steps := 0
	for sec := range t.sections {
		if !t.sch.Sections[sec].Offsets {
			continue
		}
		err := t.eachKey(sec, func(pos int, k []byte) error {
			if steps++; steps%1024 == 0 {
				turns.Give()
			}
			n, slot, tag := slotOf(hashKey(sec, k), blocks)
			if used[n]++; used[n] == offsetsSlots { // one slot stays empty and ends each search
				return errOffsetsTotal
			}
			block := b[(n+1)*offsetsBlock:]
			for binary.LittleEndian.Uint64(block[slot*8:]) != 0 {
				if slot++; slot == offsetsSlots {
					slot = 0
				}
			}
			binary.LittleEndian.PutUint64(block[slot*8:], tag<<(64-tagBits)|uint64(pos))
			return nil
		})
		if err != nil {
			return err
		}
	}
	for n := range blocks {
		block := b[(n+1)*offsetsBlock:][:offsetsBlock]
		binary.LittleEndian.PutUint64(block[offsetsSlots*8:], blockSum(block, n))
	}
	copy(b, offsetsMagic)
	binary.LittleEndian.PutUint64(b[headFormat:], offsetsFormat)
	binary.LittleEndian.PutUint64(b[headBlocks:], blocks)
	binary.LittleEndian.PutUint64(b[headCount:], lines)
	copy(b[headTable:], t.end[:])
	binary.LittleEndian.PutUint64(b[headSum:], xxhash.Sum64(b[:headSum]))
	return nil
}

// writeOffsets writes the offsets file of the open table t, for the table file called name. The file is first written
// and synced under a temporary name, and then renamed, so that a power loss leaves no damaged file. The folder is not
// synced: a power loss may undo the rename.
func writeOffsets(to Target, t *Table, name string) error {
	b, err := t.buildOffsets()
	if err != nil {
		return err
	}
	temp := to.Temp + ".offsets"
	f, err := vfs.CreateNew(to.FS, temp, to.perm())
	if err != nil {
		return err
	}
	if _, err = vfs.Streamed(f).WriteAt(b, 0); err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = to.FS.Rename(temp, filepath.Join(to.Dir, filepath.FromSlash(t.sch.offsetsOf(name))))
	}
	if err != nil {
		return errors.Join(err, ignoreMissing(to.FS.Remove(temp)))
	}
	return nil
}

func ignoreMissing(err error) error {
	if missing(err) {
		return nil
	}
	return err
}

// offsetsOfNew writes the offsets file of a new table. The new table is the file target.Temp, which the caller will
// rename to name. offsetsOfNew does nothing if target.Offsets is false or the table is too small. The offsets file is
// optional: without it, look-ups search the table.
func offsetsOfNew(target Target, sch *Schema, name string, size int64) error {
	if !target.Offsets || sch.Offsets == "" || size < sch.OffsetsFrom || size >= mostPosition {
		return nil
	}
	t, err := Open(target.FS, filepath.Dir(target.Temp), filepath.Base(target.Temp), sch)
	if err != nil {
		return err
	}
	defer func() { _ = t.Release() }()
	return writeOffsets(target, t, name)
}

// WriteOffsets writes the offsets files of those tables of a set for which OffsetsDue is true, and opens these files.
// It returns their names. Only the single writer of the tables may call WriteOffsets. damaged is called as
// Want.Damaged is.
func WriteOffsets(s *Set, to Target, damaged func(path string, err error)) (names []string, err error) {
	for _, t := range []*Table{s.base, s.delta} {
		if t == nil || !t.OffsetsDue() {
			continue
		}
		if err := writeOffsets(to, t, t.name); err != nil {
			return names, fmt.Errorf("write %s: %w", t.OffsetsName(), err)
		}
		names = append(names, t.OffsetsName())
		t.openOffsets(to.FS, to.Dir, damaged)
	}
	return names, nil
}
