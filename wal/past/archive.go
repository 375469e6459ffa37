package past

import (
	"encoding/binary"
	"fmt"
	"slices"

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
//	24  blocks: uint32 length, uint32 plain length, uint64 xxhash64 of the zstd bytes, then of the plain ones; zstd
//
// The zstd bytes of a block are a zstd frame for each part of 64 KiB, the last part may be shorter: to look at one
// entry of the log, a reader decompresses only the parts that have it (Sparse). The frames state their lengths, and
// zstd decompresses frames in a row as one, so programs that do not know parts read the block as a whole. Copies by
// such programs have one frame in a block.
//
// Each block can be read without the others, so damage to one block costs only that block. In version 1 the
// hash covers only the plain bytes, so it did not detect a flipped bit in the zstd bytes that this zstd decoder
// ignores and another decoder may not ignore.
const (
	archiveMagic = "VARVEZST"
	// ArchiveFormat is the format version of archived segments that this package writes. It is also the highest version
	// that this package reads.
	ArchiveFormat = 2
	BlockSize     = 1 << 20
	PartSize      = 64 << 10
	archiveHead   = 24
	blockHead     = 16
)

// archiveStart parses the header of an archived segment and returns the format version. If the bytes are not the
// header of this segment's copy, the error matches segment.ErrHeader. If a newer program wrote the file, the error
// matches errs.ErrNewerFormat.
func archiveStart(head []byte, number uint64) (version uint32, err error) {
	le := binary.LittleEndian
	if len(head) >= archiveHead && string(head[:8]) == archiveMagic {
		version = le.Uint32(head[8:])
		if version > ArchiveFormat {
			return version, &errs.NewerError{Path: "wal/" + CopyName(number), Format: uint64(version), Reads: ArchiveFormat}
		}
		if version >= 1 && le.Uint32(head[12:]) == BlockSize && le.Uint64(head[16:]) == number {
			return version, nil
		}
	}
	return version, fmt.Errorf("%w: the file does not begin with the header of a copy of segment %d", segment.ErrHeader,
		number)
}

// blockSum returns the checksum of a block of an archived segment. version is the format version of the file.
func blockSum(version uint32, packed, plain []byte) uint64 {
	if version == 1 {
		return xxhash.Sum64(plain)
	}
	d := xxhash.New()
	_, _ = d.Write(packed)
	_, _ = d.Write(plain)
	return d.Sum64()
}

func CopyName(number uint64) string { return fmt.Sprintf("archive/%08d.zst", number) }

// WriteCopy writes the compressed copy of a segment into a new file, and syncs the file. src reads the segment. If
// src has a method Packed that returns a block in compressed form, WriteCopy uses that form and does not compress
// the block.
func WriteCopy(out vfs.File, geo segment.Geometry, number uint64, src Source) error {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return err
	}
	defer enc.Close()
	le := binary.LittleEndian
	block := min(BlockSize, geo.Size)
	b := append(make([]byte, 0, 2*block), archiveMagic...)
	b = le.AppendUint32(b, ArchiveFormat)
	b = le.AppendUint32(b, BlockSize)
	b = le.AppendUint64(b, number)
	plain := make([]byte, block)
	var at, end int64
	for i := 0; ; i++ {
		// What a file has beyond the size of a segment, perhaps a hole of terabytes, does not belong to the
		// log.
		n, err := ReadFull(src, plain[:min(block, geo.Size-uint64(at))], at)
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		var packed []byte
		if e, ok := src.(interface {
			Packed(block int, plain []byte) []byte
		}); ok {
			packed = e.Packed(i, plain[:n])
		}
		at += int64(n)
		if head := len(b); packed != nil {
			b = append(b, packed...)
		} else {
			b = append(b, make([]byte, blockHead)...)
			for part := range slices.Chunk(plain[:n], PartSize) {
				b = enc.EncodeAll(part, b)
			}
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
