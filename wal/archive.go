package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
)

// An archived segment is wal/archive/<number>.zst:
//
//	0   8 bytes "VARVEZST"
//	8   uint32 version 2, uint32 block size (1 MiB)
//	16  uint64 number
//	24  blocks: uint32 length, uint32 plain length, uint64 xxhash64 of the zstd bytes and the plain ones after them, then zstd
//
// Each block can be read without the others, so a damaged one costs itself only. In version 1 the
// hash is of the plain bytes alone: a bit that another zstd may read otherwise
// could flip unseen.
const (
	archiveMagic = "VARVEZST"
	// ArchiveFormat is the version that this package writes, and the highest that it reads.
	ArchiveFormat = 2
	archiveBlock  = 1 << 20
	archiveHead   = 24
	blockHead     = 16
)

// archiveStart reads the head of the copy of a segment. The error matches
// segment.ErrHeader when it is none, errs.ErrNewerFormat when a newer program made it.
func archiveStart(head []byte, number uint64) (version uint32, err error) {
	le := binary.LittleEndian
	if len(head) >= archiveHead && string(head[:8]) == archiveMagic {
		version = le.Uint32(head[8:])
		if version > ArchiveFormat {
			return version, &errs.NewerError{Path: "wal/" + archiveName(number), Format: uint64(version), Reads: ArchiveFormat}
		}
		if version >= 1 && le.Uint32(head[12:]) == archiveBlock && le.Uint64(head[16:]) == number {
			return version, nil
		}
	}
	return version, fmt.Errorf("%w: the file does not begin like a copy of segment %d", segment.ErrHeader, number)
}

// blockSum is the checksum of a block.
func blockSum(version uint32, packed, plain []byte) uint64 {
	if version == 1 {
		return xxhash.Sum64(plain)
	}
	d := xxhash.New()
	_, _ = d.Write(packed)
	_, _ = d.Write(plain)
	return d.Sum64()
}

func archiveName(number uint64) string { return fmt.Sprintf("archive/%08d.zst", number) }

// archive copies a released segment into archive/ and makes the copy durable. What does not verify is
// a gap in the copy, and named in an event.
// On a full disk, where nothing older can make room, or without a budget, the gap is recorded
// instead: history has a hole, memories have none.
func (l *FileLog) archive(number uint64) error {
	_, err := l.archiveNaming(number)
	return err
}

// archiveNaming is archive, and returns what does not verify: *LostError.
func (l *FileLog) archiveNaming(number uint64) (lost []error, err error) {
	if bytes, _ := l.o.Archive(); bytes > 0 {
		gaps, err := l.copySegment(number)
		for vfs.IsDiskFull(err) {
			given, gerr := l.cutArchive(number)
			if gerr != nil {
				return nil, gerr
			}
			if !given {
				break
			}
			gaps, err = l.copySegment(number)
		}
		path := "wal/" + segment.Name(number)
		if lost = lostIn(path, gaps); len(lost) > 0 {
			l.o.Logger.Warn("a segment of the log was damaged and is archived without what does not verify", "segment", segment.Name(number), "why", lost[0])
			l.o.Event(Event{Kind: EventArchiveGap, Path: path, LSN: gaps[0].At, Err: errors.Join(lost...), Note: "archived without what does not verify"})
		}
		if err != nil {
			_ = l.letGo(l.o.wal(archiveName(number)) + ".new")
			if !vfs.IsDiskFull(err) && !errors.Is(err, fs.ErrNotExist) {
				return lost, l.ioError("archiving", l.o.wal(segment.Name(number)), err)
			}
			l.o.Event(Event{Kind: EventArchiveGap, Path: path, Err: err})
			return lost, nil
		}
	}
	return lost, l.keepBudget()
}

// archived says whether the copy of a segment is there. One that begins as
// another, of an earlier life of this folder or damaged, is made again.
func (l *FileLog) archived(number uint64) bool {
	c, err := openCopy(l.o.FS, l.o.walDir(), number)
	if err != nil {
		return false
	}
	defer c.Close()
	_, have, err := readStart(c)
	if err != nil {
		return false
	}
	f, err := l.segment(number)
	if err != nil {
		return true
	}
	_, want, err := readStart(f)
	return err != nil || have.Sum == want.Sum
}

// putCopy writes the copy of a segment and puts it in its place, durably.
func (l *FileLog) putCopy(number uint64, in source) error {
	name := l.o.wal(archiveName(number))
	if err := l.writeCopy(name+".new", number, in); err != nil {
		return err
	}
	if err := l.o.FS.Rename(name+".new", name); err != nil {
		return err
	}
	return l.o.FS.SyncDir(l.o.wal("archive"))
}

// writeCopy writes the copy of a segment, under a name of its own, and syncs it.
func (l *FileLog) writeCopy(name string, number uint64, in source) error {
	if l.Overwrites() { // a copy that was cut has left one of this name
		if err := l.letGo(name); err != nil {
			return err
		}
	}
	out, err := vfs.CreateNew(l.o.FS, name, l.o.FileMode)
	if err != nil {
		return err
	}
	defer out.Close()
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return err
	}
	defer enc.Close()
	le := binary.LittleEndian
	block := min(archiveBlock, l.geo.Size)
	b := append(make([]byte, 0, 2*block), archiveMagic...)
	b = le.AppendUint32(b, ArchiveFormat)
	b = le.AppendUint32(b, archiveBlock)
	b = le.AppendUint64(b, number)
	plain := make([]byte, block)
	var at, end int64
	for i := 0; ; i++ {
		// What a file has beyond a segment's size, perhaps a hole of terabytes, is none of the log's.
		n, err := readFull(in, plain[:min(block, l.geo.Size-uint64(at))], at)
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		var packed []byte
		if e, ok := in.(*erasedSegment); ok {
			packed = e.packed(i, plain[:n])
		}
		at += int64(n)
		if head := len(b); packed != nil {
			b = append(b, packed...)
		} else {
			b = append(b, make([]byte, blockHead)...)
			b = enc.EncodeAll(plain[:n], b)
			le.PutUint32(b[head:], uint32(len(b)-head-blockHead))
			le.PutUint32(b[head+4:], uint32(n))
			le.PutUint64(b[head+8:], blockSum(ArchiveFormat, b[head+blockHead:], plain[:n]))
		}
		if _, err := out.WriteAt(b, end); err != nil {
			return err
		}
		end += int64(len(b))
		b = b[:0]
	}
	return out.Sync()
}
