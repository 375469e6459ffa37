package past

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/errgroup"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
)

// Copy reads an archived segment by position, as if it were the segment's file. All blocks except the last are full, so
// a position determines the index of its block. To find a block in the file, Copy reads the headers of the blocks
// before it, and remembers where they are. It keeps one decompressed block. If the file is damaged, the error matches
// segment.ErrPayload.
type Copy struct {
	f       vfs.File
	info    vfs.Info
	size    int64
	dec     *zstd.Decoder
	starts  []int64 // offsets in the file of the blocks found so far, and the offset after the last of them
	last    bool    // the last found block is the last of the file
	version uint32
	packed  []byte
	plain   []byte
	held    int // index of the block that plain has, -1 if none

	part     []byte // the part that was last decompressed
	partAt   int64  // offset of part in the segment
	inflated int64  // number of bytes that were decompressed
}

// OpenCopy opens the copy of a segment in dir/archive. If the copy is missing, the error matches ErrNoSegment.
func OpenCopy(fsys vfs.FS, dir string, number uint64) (*Copy, error) {
	f, err := fsys.OpenFile(filepath.Join(dir, CopyName(number)), os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("segment %d is not in the archive: %w", number, ErrNoSegment)
	}
	if err != nil {
		return nil, fmt.Errorf("opening an archived segment: %w", err)
	}
	c := &Copy{f: f, held: -1, starts: []int64{archiveHead}}
	if err := c.open(number); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Copy) open(number uint64) error {
	info, err := c.f.Stat()
	if err != nil {
		return err
	}
	c.info, c.size = info, info.Size
	var head [archiveHead]byte
	n, err := ReadFull(c.f, head[:], 0)
	if err != nil {
		return err
	}
	version, bad := archiveStart(head[:n], number)
	if bad != nil && !errors.Is(bad, errs.ErrNewerFormat) {
		return fmt.Errorf("%s: %w", c.Name(), bad)
	}
	c.version = min(version, ArchiveFormat)
	// The checksum of a block in the archive format covers the bytes that the checksum of zstd covers.
	c.dec, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.IgnoreChecksum(true),
		zstd.WithDecoderMaxMemory(2*BlockSize))
	if err == nil && bad != nil {
		// If only a bit of the version has flipped, this is not the file of a newer program: then the blocks
		// have the present format.
		if c.block(0) == nil && len(c.plain) > 0 {
			bad = fmt.Errorf("%w: the file does not begin with the header of a copy of segment %d, but the first "+
				"block of the file is valid", segment.ErrHeader, number)
		}
		err = fmt.Errorf("%s: %w", c.Name(), bad)
	}
	return err
}

// Name returns the path of the archived segment's file.
func (c *Copy) Name() string { return c.f.Name() }

// Close closes the archived segment's file.
func (c *Copy) Close() error {
	if c.dec != nil {
		c.dec.Close()
	}
	return c.f.Close()
}

// ReadAt implements io.ReaderAt for the bytes of the segment.
func (c *Copy) ReadAt(b []byte, off int64) (int, error) {
	n := 0
	for n < len(b) {
		at := off + int64(n)
		if err := c.block(int(at / BlockSize)); err != nil {
			return n, err
		}
		from := at % BlockSize
		if from >= int64(len(c.plain)) {
			return n, io.EOF
		}
		n += copy(b[n:], c.plain[from:])
	}
	return n, nil
}

// block decompresses block i into c.plain. After the last block, c.plain is empty.
func (c *Copy) block(i int) error {
	if i == c.held {
		return nil
	}
	c.held = -1
	head, err := c.seek(i)
	if err != nil {
		return err
	}
	if head == nil {
		c.plain, c.held = c.plain[:0], i
		return nil
	}
	at := c.starts[i]
	packed, err := c.read(i, head)
	if err != nil {
		return err
	}
	if c.plain, err = c.unpack(c.dec, at, head, packed, c.plain[:0]); err == nil {
		c.held = i
	}
	c.inflated += int64(len(c.plain))
	return err
}

// read returns the compressed bytes of block i, whose header is head. The bytes are valid until the next call of read.
func (c *Copy) read(i int, head *[blockHead]byte) ([]byte, error) {
	size := int(binary.LittleEndian.Uint32(head[:]))
	if cap(c.packed) < size {
		c.packed = make([]byte, size)
	}
	n, err := ReadFull(c.f, c.packed[:size], c.starts[i]+blockHead)
	return c.packed[:n], err
}

// unpack decompresses the block at the offset off of the file into dst, and checks the block against its header.
func (c *Copy) unpack(dec *zstd.Decoder, off int64, head *[blockHead]byte, packed, dst []byte) ([]byte, error) {
	le := binary.LittleEndian
	plain, err := dec.DecodeAll(packed, dst)
	if err == nil && (len(plain) != int(le.Uint32(head[4:])) ||
		blockSum(c.version, packed, plain) != le.Uint64(head[8:])) {
		err = errors.New("the block does not match its checksum")
	}
	if err != nil {
		err = c.bad(off, err)
	}
	return plain, err
}

// inflateAtOnce is the number of blocks of an archived segment that are decompressed at the same time.
const inflateAtOnce = 2

// Inflate decompresses the archived segment into b, as far as there is room in b. It returns the number of bytes in b.
func (c *Copy) Inflate(b []byte) (n int, err error) {
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(inflateAtOnce), zstd.IgnoreChecksum(true),
		zstd.WithDecoderMaxMemory(2*BlockSize))
	if err != nil {
		return 0, err
	}
	defer dec.Close()
	var g errgroup.Group
	g.SetLimit(inflateAtOnce)
	for i := 0; n < len(b); i++ {
		head, err := c.seek(i)
		if err != nil || head == nil {
			return n, errors.Join(err, g.Wait())
		}
		le, at := binary.LittleEndian, c.starts[i]
		full := int(le.Uint32(head[4:]))
		packed := make([]byte, le.Uint32(head[:]))
		m, err := ReadFull(c.f, packed, at+blockHead)
		if err != nil {
			return n, errors.Join(err, g.Wait())
		}
		place := b[n:min(n+full, len(b))]
		g.Go(func() error {
			plain, err := c.unpack(dec, at, head, packed[:m], place[:0:len(place)])
			if err == nil && &plain[0] != &place[0] { // b had no room for the block
				copy(place, plain)
			}
			return err
		})
		if n += len(place); full < BlockSize {
			break // the last block
		}
	}
	return n, g.Wait()
}

// Longer reports whether the file has further data after its last block. Call it after the whole copy was read.
func (c *Copy) Longer() bool { return c.starts[len(c.starts)-1] < c.size }

// seek finds block i in the file and returns the header of the block. It returns nil if i is after the last block.
func (c *Copy) seek(i int) (*[blockHead]byte, error) {
	for {
		k := min(i, len(c.starts)-1)
		at := c.starts[k]
		if at == c.size || c.last && k < i {
			return nil, nil
		}
		var head [blockHead]byte
		n, err := ReadFull(c.f, head[:], at)
		if err != nil {
			return nil, err
		}
		le := binary.LittleEndian
		size, full := int64(le.Uint32(head[:])), int64(le.Uint32(head[4:]))
		// An impossible length is not followed.
		if n < len(head) || size > 2*BlockSize || full == 0 || full > BlockSize || size > c.size-at-blockHead {
			return nil, c.bad(at, errors.New("there is no block at this offset, or the file ends within the block"))
		}
		if k+1 == len(c.starts) {
			c.starts = append(c.starts, at+blockHead+size)
			c.last = full < BlockSize
		}
		if k == i {
			return &head, nil
		}
	}
}

func (c *Copy) bad(off int64, err error) error {
	return fmt.Errorf("%s at byte %d: %w: %w", c.Name(), off, segment.ErrPayload, err)
}

// InflateCopy returns the decompressed content of an archived segment, as far as it can be read despite damage. whole
// reports whether all blocks were read and match their checksums. ok is false if b is not an archived segment.
func InflateCopy(b []byte) (plain []byte, whole, ok bool) {
	if len(b) < archiveHead || string(b[:8]) != archiveMagic {
		return nil, false, false
	}
	le := binary.LittleEndian
	number := le.Uint64(b[16:])
	version, err := archiveStart(b, number)
	version, whole = min(version, ArchiveFormat), err == nil
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(2*BlockSize))
	if err != nil {
		return nil, false, false
	}
	defer dec.Close()
	at := archiveHead
	for at+blockHead <= len(b) {
		size, full := int(le.Uint32(b[at:])), int(le.Uint32(b[at+4:]))
		if size > 2*BlockSize || size > len(b)-at-blockHead {
			break
		}
		packed := b[at+blockHead : at+blockHead+size]
		block, err := dec.DecodeAll(packed, nil)
		if len(plain)+len(block) > segment.MaxSize { // small blocks may decompress to any size
			return plain, false, true
		}
		whole = whole && err == nil && len(block) == full && blockSum(version, packed, block) == le.Uint64(b[at+8:])
		plain = append(plain, block...)
		at += blockHead + size
	}
	start, _, err := segment.ParseStart(plain)
	return plain, whole && at == len(b) && err == nil && start.Number == number, true
}

// Packed returns block i of the file in compressed form, with its header. It returns nil if the decompressed content
// of the block differs from the parameter plain, if the block cannot be read, or if the file has another version than
// ArchiveFormat.
func (c *Copy) Packed(i int, plain []byte) []byte {
	head, err := c.seek(i)
	if err != nil || head == nil || c.version != ArchiveFormat {
		return nil
	}
	le := binary.LittleEndian
	if int(le.Uint32(head[4:])) != len(plain) {
		return nil
	}
	b := make([]byte, blockHead+int(le.Uint32(head[:])))
	if n, err := ReadFull(c.f, b, c.starts[i]); err != nil || n < len(b) {
		return nil
	}
	if blockSum(ArchiveFormat, b[blockHead:], plain) != le.Uint64(b[8:]) {
		return nil
	}
	return b
}

// EachBlock calls visit for each block of the segment with the offset of the block in the segment. It returns the
// first error of visit.
func (c *Copy) EachBlock(visit func(b []byte, at int64) error) error {
	for i := 0; ; i++ {
		if err := c.block(i); err != nil {
			return err
		}
		if len(c.plain) == 0 {
			return nil
		}
		if err := visit(c.plain, int64(i)*BlockSize); err != nil {
			return err
		}
	}
}

// Info returns the file information that the copy's file had when it was opened.
func (c *Copy) Info() vfs.Info { return c.info }
