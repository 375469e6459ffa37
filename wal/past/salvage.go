package past

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/klauspost/compress/zstd"

	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
)

// NewSalvaged returns a Salvaged that reads the segment in src. Call Patch to replace its damaged parts.
func NewSalvaged(src Source, geo segment.Geometry) *Salvaged { return &Salvaged{Source: src, geo: geo} }

// Frames returns the number of undamaged entries that Patch has found.
func (s *Salvaged) Frames() int { return s.frames }

// Size returns the number of bytes of the patched segment.
func (s *Salvaged) Size() int64 { return s.size }

// Salvaged is a reader of a damaged segment. In place of missing frames, it returns gap frames, which record the loss
// and keep the chain of checksums intact.
type Salvaged struct {
	Source
	geo     segment.Geometry
	patches []segment.Gap
	size    int64 // offset up to which the segment is read
	frames  int   // number of sound entries
}

// ReadAt implements io.ReaderAt for the patched segment.
func (s *Salvaged) ReadAt(b []byte, off int64) (int, error) {
	if off >= s.size {
		return 0, nil
	}
	b = b[:min(int64(len(b)), s.size-off)]
	n, err := s.Source.ReadAt(b, off)
	for i := range s.patches {
		p := &s.patches[i]
		at := s.geo.Offset(p.At)
		from, to := max(at, off), min(at+int64(p.Len), off+int64(len(b)))
		if from >= to {
			continue
		}
		piece := b[from-off : to-off]
		clear(piece)
		if head := from - at; head < int64(len(p.Bytes)) {
			copy(piece, p.Bytes[head:])
		}
		if n = max(n, int(to-off)); n == len(b) {
			err = nil // what the file lacks at its end is patched
		}
	}
	return n, err
}

// Patch finds the holes of the segment and makes the gap frames that replace them. prev is the mark at which the
// previous segment ends, or zero if unknown. end is the mark up to which the segment has frames; its hash is 0 if
// unknown. Patch returns the holes.
func (s *Salvaged) Patch(ctx context.Context, number uint64, prev, end Mark) (gaps []Gap, err error) {
	var before []Mark // for each gap, the frame before it
	last := Mark{}
	reached, frames := s.geo.Start(number), end.LSN
	_, err = WalkFrames(ctx, s.geo, s.Source, number, Mark{}, end.LSN, func(m Mark, h *segment.Header, _ []byte) error {
		if last, reached = m, m.LSN; h.Kind >= KindUser {
			s.frames++
		}
		return nil
	}, func(g Gap) {
		if errors.Is(g.Err, segment.ErrEnd) && g.To == end.LSN && end.Sum == 0 {
			frames = g.At // the frames end here
			return
		}
		if n := len(gaps); n > 0 && gaps[n-1].To == g.At {
			gaps[n-1].To = g.To
		} else {
			gaps, before = append(gaps, g), append(before, last)
		}
		reached = g.To
	})
	if err != nil {
		return nil, err
	}
	s.size, end.LSN = s.geo.Offset(reached-1)+1, frames
	for i := range gaps {
		if err := s.fill(&gaps[i], before[i], prev, end, number); err != nil {
			return nil, err
		}
	}
	return gaps, nil
}

// fill makes the gap frames that replace the hole g. before is the mark at which g begins, prev is the mark at which
// the previous segment ends, and end is the mark up to which the segment has frames. If g is too small for a gap
// frame, fill also drops the frames after g until there is room.
func (s *Salvaged) fill(g *Gap, before, prev, end Mark, number uint64) error {
	at, previous := g.At, before.Sum
	if at == s.geo.Start(number) { // the segment's own start is gone
		h := segment.Header{}
		b := segment.AppendStart(nil, segment.Start{Geometry: s.geo, Number: number, PrevEnd: prev.LSN, PrevSum: prev.Sum},
			&h)
		s.patches = append(s.patches, segment.Gap{At: at, Len: uint64(len(b)), Bytes: b})
		at, previous = h.End(), h.Sum
	}
	for g.To < end.LSN && g.To < at+segment.MinGap { // there is no room for a gap frame: the next frame is dropped as well
		h, err := s.header(g.To)
		if err != nil {
			return err
		}
		g.To = h.End()
	}
	sum := end.Sum
	if g.To < end.LSN {
		h, err := s.header(g.To)
		if err != nil {
			return err
		}
		sum = h.Previous
	}
	if g.To < at+segment.MinGap {
		return nil
	}
	s.patches = append(s.patches, s.geo.Gaps(at, g.To, previous, sum, 0)...)
	return nil
}

// header reads the header of the frame at position pos, which must be valid.
func (s *Salvaged) header(pos LSN) (segment.Header, error) {
	var b [segment.HeaderSize]byte
	n, err := ReadFull(s.Source, b[:], s.geo.Offset(pos))
	if err != nil {
		return segment.Header{}, err
	}
	h, err := s.geo.ParseHeader(b[:n], pos)
	if err != nil {
		return h, fmt.Errorf("reading the frame after a damaged part: %w", err)
	}
	return h, nil
}

// zstdMagic is the prefix of the compressed bytes of every block of an archived segment.
var zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// SalvageCopy decompresses the valid blocks of an archived segment, even if the header of the file is damaged. bad has
// an error for each damaged block. Of a damaged block, SalvageCopy keeps the parts that match their zstd checksum, and
// replaces the other parts by zeros. If the header of a block is damaged, it searches for the next block that is valid.
func SalvageCopy(fsys vfs.FS, name string, number uint64) (plain []byte, bad []error, err error) {
	f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	c := &Copy{f: f, size: info.Size, version: ArchiveFormat}
	var head [archiveHead]byte
	n, err := ReadFull(f, head[:], 0)
	if err != nil {
		return nil, nil, err
	}
	if version, _ := archiveStart(head[:n], number); version == 1 {
		c.version = 1
	}
	c.dec, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.IgnoreChecksum(true),
		zstd.WithDecoderMaxMemory(2*BlockSize))
	if err != nil {
		return nil, nil, err
	}
	defer c.dec.Close()
	strict, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(2*BlockSize))
	if err != nil {
		return nil, nil, err
	}
	defer strict.Close()
	for at := int64(archiveHead); at < info.Size && len(plain) < segment.MaxSize; {
		block, end, err := c.blockAt(at)
		if err == nil {
			plain, at = append(plain, block...), end
			continue
		}
		if !IsNoFrame(err) {
			return nil, nil, err
		}
		bad = append(bad, err)
		// if it is the last block perhaps more than it had: zeros are never a frame
		plain = append(plain, make([]byte, BlockSize)...)
		if end == 0 {
			if end, err = c.nextBlock(at + 1); err != nil {
				return nil, nil, err
			}
		}
		if err := c.soundParts(strict, at, end, plain[len(plain)-BlockSize:]); err != nil {
			return nil, nil, err
		}
		at = end
	}
	return plain, bad, nil
}

// blockAt decompresses the block at the offset off of the file. end is the offset after the block, or 0 if the
// header of the block is damaged.
func (c *Copy) blockAt(off int64) (plain []byte, end int64, err error) {
	c.starts, c.last = []int64{off}, false
	head, err := c.seek(0)
	if err != nil || head == nil {
		return nil, 0, err
	}
	packed := make([]byte, binary.LittleEndian.Uint32(head[:]))
	n, err := ReadFull(c.f, packed, off+blockHead)
	if err != nil {
		return nil, 0, err
	}
	plain, err = c.unpack(c.dec, off, head, packed[:n], nil)
	if end = c.starts[1]; err != nil && end < c.size {
		c.starts, c.last = []int64{end}, false
		if _, after := c.seek(0); after != nil {
			end = 0 // the length may be damaged
		}
	}
	return plain, end, err
}

// soundParts decompresses the parts of a damaged block that match their zstd checksum into b. b must be filled
// with zeros; for the other parts the zeros remain. The block begins at the offset off of the file and ends before
// end.
func (c *Copy) soundParts(strict *zstd.Decoder, off, end int64, b []byte) error {
	packed := make([]byte, min(max(end-off-blockHead, 0), 2*BlockSize))
	n, err := ReadFull(c.f, packed, off+blockHead)
	if err != nil {
		return err
	}
	for packed = packed[:n]; ; {
		size, holds, ok := partIn(packed)
		if !ok || holds > len(b) {
			return nil
		}
		if part, err := strict.DecodeAll(packed[:size], nil); err == nil && len(part) == holds {
			copy(b, part)
		}
		b, packed = b[holds:], packed[size:]
	}
}

// nextBlock searches for the next valid block, beginning at an offset of the file. It searches at most 4*BlockSize
// bytes, which is as long as two damaged blocks can be. It returns the offset of the block, or the size of the file if
// it finds none.
func (c *Copy) nextBlock(from int64) (int64, error) {
	rest := make([]byte, min(c.size-from, 4*BlockSize))
	n, err := ReadFull(c.f, rest, from)
	if err != nil {
		return 0, err
	}
	for off := blockHead; ; off++ {
		i := bytes.Index(rest[min(off, n):n], zstdMagic)
		if i < 0 {
			return c.size, nil
		}
		off += i
		at := from + int64(off) - blockHead
		_, _, err := c.blockAt(at)
		if err == nil {
			return at, nil
		}
		if !IsNoFrame(err) {
			return 0, err
		}
	}
}
