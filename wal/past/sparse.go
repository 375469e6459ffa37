package past

import (
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"
)

// Sparse reads a few bytes of a copy, and decompresses only the part of a block that contains them. It does not verify
// the checksum of the block. So use it only for bytes that have their own checksum, such as the frames of the log.
type Sparse struct{ *Copy }

// ReadAt implements io.ReaderAt for the bytes of the segment. Unlike Copy.ReadAt, it may return damaged bytes.
func (s Sparse) ReadAt(b []byte, off int64) (int, error) {
	n := 0
	for n < len(b) {
		at := off + int64(n)
		plain, base, err := s.partOf(at)
		if err != nil {
			return n, err
		}
		if at-base >= int64(len(plain)) {
			return n, io.EOF
		}
		n += copy(b[n:], plain[at-base:])
	}
	return n, nil
}

// Inflated returns the number of bytes that were decompressed so far to read this copy.
func (c *Copy) Inflated() int64 { return c.inflated }

var errPart = errors.New("the length of a part of the block differs from the length in the header of the part")

// partOf returns the decompressed part that contains an offset of the segment, and the offset at which the part begins.
// If the block is not divided into parts, it returns the whole block.
func (c *Copy) partOf(off int64) (plain []byte, base int64, err error) {
	if len(c.part) > 0 && off >= c.partAt && off < c.partAt+int64(len(c.part)) {
		return c.part, c.partAt, nil
	}
	i, within := int(off/BlockSize), int(off%BlockSize)
	base = int64(i) * BlockSize
	if i == c.held {
		return c.plain, base, nil
	}
	head, err := c.seek(i)
	if err != nil || head == nil {
		return nil, base, err
	}
	packed, err := c.read(i, head)
	if err != nil {
		return nil, base, err
	}
	for from := 0; ; {
		size, holds, ok := partIn(packed)
		if !ok || size == len(packed) && from == 0 {
			return c.whole(i)
		}
		if within >= from+holds {
			from, packed = from+holds, packed[size:]
			continue
		}
		c.part, err = c.dec.DecodeAll(packed[:size], c.part[:0])
		c.inflated += int64(len(c.part))
		if err == nil && len(c.part) != holds {
			err = errPart
		}
		if err != nil {
			c.part = c.part[:0]
			return nil, base, c.bad(c.starts[i], err)
		}
		c.partAt = base + int64(from)
		return c.part, c.partAt, nil
	}
}

// whole returns the decompressed block i, and the offset of the block in the segment.
func (c *Copy) whole(i int) ([]byte, int64, error) {
	err := c.block(i)
	return c.plain, int64(i) * BlockSize, err
}

// partIn returns the length of the zstd frame at the beginning of b, and the length of its decompressed content. ok is
// false if b does not begin with a complete zstd frame that records the length of its content.
func partIn(b []byte) (size, holds int, ok bool) {
	var h zstd.Header
	if h.Decode(b) != nil || h.Skippable || !h.HasFCS || h.FrameContentSize == 0 || h.FrameContentSize > BlockSize {
		return 0, 0, false
	}
	// A zstd block has a header of 3 bytes: a bit for the last one, two bits for its type, and its size. The second
	// type repeats one byte.
	size = h.HeaderSize
	for last := false; !last; {
		if size+3 > len(b) {
			return 0, 0, false
		}
		block := int(b[size]) | int(b[size+1])<<8 | int(b[size+2])<<16
		last = block&1 != 0
		if size += 3; block>>1&3 == 1 {
			size++
		} else {
			size += block >> 3
		}
	}
	if h.HasCheckSum {
		size += 4
	}
	return size, int(h.FrameContentSize), size <= len(b)
}
