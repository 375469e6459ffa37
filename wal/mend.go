package wal

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/klauspost/compress/zstd"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
)

// The archive keeps nothing that does not verify. The checksum of a block proves only that the block
// is what was compressed, so a segment with a damaged frame could become a copy with sound blocks,
// which no reader of blocks finds and no purge can read. Therefore:
//
//   - the archiver walks the frames of a segment, and archives a damaged one as a repair does, with
//     gaps in the place of what does not verify (package segment);
//   - verify walks the frames of each copy;
//   - repair and purge replace a damaged copy by one with gaps. A purge overwrites the damaged one: it
//     may contain what is purged, and nothing can tell.
//
// Each names what was lost: the archiver in an event, a purge in its report, a repair in its plan, and
// from then on verify, by the gaps.

// LostError reports a piece of the history that was lost with a damaged file of the log.
type LostError struct {
	Path     string // in the store
	From, To LSN    // versions in between are lost
	Err      error  // what is damaged
}

// Error is the message, in one line.
func (e *LostError) Error() string {
	return fmt.Sprintf("%s was damaged: the versions from %d to %d are lost from the history, memories are not: %v", e.Path, e.From, e.To, e.Err)
}

// Unwrap returns the damage.
func (e *LostError) Unwrap() error { return e.Err }

// lostIn returns an error for each gap of a file.
func lostIn(path string, gaps []Gap) (list []error) {
	for _, g := range gaps {
		list = append(list, &LostError{Path: path, From: g.At, To: g.To, Err: g.Err})
	}
	return list
}

// endOf returns where the frames of a segment end, as the start of the next one says. Without one it
// is the end of the segment, without a checksum.
func (l *FileLog) endOf(number uint64) (Mark, error) {
	s, _, err := l.Past().start(number + 1)
	switch {
	case err == nil && s.PrevEnd != 0 && l.geo.Number(s.PrevEnd-1) == number:
		return Mark{s.PrevEnd, s.PrevSum}, nil
	case err == nil, isNoFrame(err), errors.Is(err, errs.ErrNewerFormat):
		return Mark{LSN: l.geo.End(number)}, nil
	}
	return Mark{}, err
}

// CheckArchived walks the frames of an archived segment. holes are the places without a frame, gaps
// those of which an earlier repair, purge or archiving found nothing. The error matches
// segment.ErrPayload when a block cannot be read: ReadArchive says which.
func (l *FileLog) CheckArchived(ctx context.Context, number uint64) (holes []Gap, gaps []*errs.GapError, err error) {
	c, err := openCopy(l.o.FS, l.o.walDir(), number)
	if errors.Is(err, errNoSegment) {
		return nil, nil, fmt.Errorf("%s: %w", archiveName(number), fs.ErrNotExist)
	}
	if err != nil {
		return nil, nil, err
	}
	defer c.Close()
	end, err := l.endOf(number)
	if err != nil {
		return nil, nil, err
	}
	at, err := walkFrames(ctx, l.geo, c, number, Mark{}, end.LSN, func(_ Mark, h *segment.Header, _ []byte) error {
		if h.Kind != segment.KindGap {
			return nil
		}
		if n := len(gaps); n > 0 && gaps[n-1].To == h.LSN {
			gaps[n-1].To = h.End()
		} else {
			gaps = append(gaps, &errs.GapError{From: h.LSN, To: h.End()})
		}
		return nil
	}, func(g Gap) {
		switch n := len(holes); {
		case end.Sum == 0 && errors.Is(g.Err, segment.ErrEnd) && g.To == end.LSN: // the frames end here
		case n > 0 && holes[n-1].To == g.At:
			holes[n-1].To = g.To
		default:
			holes = append(holes, g)
		}
	})
	if err == nil && len(holes) == 0 && end.Sum != 0 && at != end {
		holes = append(holes, Gap{At: end.LSN, To: end.LSN, Err: errUnlinked})
	}
	return holes, gaps, err
}

// lacks returns how many bytes of a copy are no frames of the log; damaged reports that the copy cannot
// be read through.
func (l *FileLog) lacks(number uint64) (bytes uint64, damaged bool, err error) {
	holes, gaps, err := l.CheckArchived(context.Background(), number)
	if err != nil {
		if isNoFrame(err) {
			err = nil
		}
		return 0, true, err
	}
	for _, g := range gaps {
		bytes += g.To - g.From
	}
	return bytes, len(holes) > 0, nil
}

// copySegment writes the copy of a segment into archive/, with gaps in the place of what does not
// verify, which it returns. A sound copy that exists already stays, and so does one that has more of
// the segment than its file.
func (l *FileLog) copySegment(number uint64) (gaps []Gap, err error) {
	most := ^uint64(0)
	if l.archived(number) {
		lacks, damaged, err := l.lacks(number)
		if err != nil || lacks == 0 && !damaged {
			return nil, err
		}
		if !damaged {
			most = lacks
		}
	}
	ctx := context.Background()
	f, err := l.openSegment(number)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	end, err := l.endOf(number)
	if err != nil {
		return nil, err
	}
	prev, err := l.endBefore(ctx, number, f)
	if err != nil {
		return nil, err
	}
	s := &salvaged{source: f, geo: l.geo}
	if gaps, err = s.patch(ctx, number, prev, end); err != nil {
		return nil, err
	}
	from := source(f)
	if len(gaps) > 0 {
		from = s
		lost := uint64(0)
		for _, g := range gaps {
			lost += g.To - g.At
		}
		if lost >= most {
			return nil, nil
		}
	}
	return gaps, l.putCopy(number, from)
}

// Mended is what is sound of a damaged copy in the archive.
type Mended struct {
	Lost []error // *LostError
	b    []byte  // the segment, with gaps
	geo  segment.Geometry
}

// MendArchived reads a damaged copy as far as its blocks and frames verify; nil if nothing does, or if it is of
// another log. It changes nothing.
func (l *FileLog) MendArchived(ctx context.Context, number uint64) (*Mended, error) {
	path := "wal/" + archiveName(number)
	plain, bad, err := salvageCopy(l.o.FS, l.o.wal(archiveName(number)), number)
	if err != nil {
		return nil, err
	}
	m := &Mended{geo: l.geo}
	if start, _, err := segment.ParseStart(plain); err == nil && start.Number == number {
		m.geo = start.Geometry
		if start.UUID != l.geo.UUID {
			return nil, nil // of another log: mended it would be that still
		}
	}
	end := Mark{LSN: m.geo.End(number)}
	var prev Mark
	if m.geo == l.geo {
		if end, err = l.endOf(number); err != nil {
			return nil, err
		}
		if prev, err = l.endBefore(ctx, number, memory{bytes.NewReader(plain), path}); err != nil {
			return nil, err
		}
	}
	s := &salvaged{source: memory{bytes.NewReader(plain), path}, geo: m.geo}
	gaps, err := s.patch(ctx, number, prev, end)
	if err != nil || s.frames == 0 {
		return nil, err
	}
	m.Lost = lostIn(path, gaps)
	if len(gaps) == 0 && len(bad) > 0 && end.Sum == 0 { // nothing says where the frames ended
		m.Lost = []error{&LostError{Path: path, From: m.geo.Start(number) + uint64(s.size), To: end.LSN, Err: bad[0]}}
	}
	m.b = make([]byte, s.size)
	if n, err := readFull(s, m.b, 0); err != nil || n < len(m.b) {
		return nil, fmt.Errorf("%s: %d of %d bytes: %w", path, n, len(m.b), errors.Join(segment.ErrPayload, err))
	}
	return m, nil
}

// WriteMended puts the sound part of a damaged copy in the place of the copy.
func (l *FileLog) WriteMended(held *Held, number uint64, m *Mended) error {
	if err := held.proves(l); err != nil {
		return err
	}
	if err := l.putCopy(number, memory{bytes.NewReader(m.b), archiveName(number)}); err != nil {
		return l.ioError("rewriting", l.o.wal(archiveName(number)), err)
	}
	return nil
}

// memory is a segment in memory.
type memory struct {
	*bytes.Reader
	name string
}

// Name is the path of the file from which the bytes are.
func (m memory) Name() string { return m.name }

// zstdMagic begins the compressed bytes of a block.
var zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// salvageCopy inflates the blocks of an archived segment that verify, whatever the head of the file
// says. Zeros take the place of a block that does not verify; bad has an error for each. Where the head of a block is
// damaged, the next block is found by its own head and checksum.
func salvageCopy(fsys vfs.FS, name string, number uint64) (plain []byte, bad []error, err error) {
	f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	c := &segmentCopy{f: f, size: info.Size, version: ArchiveFormat}
	var head [archiveHead]byte
	n, err := readFull(f, head[:], 0)
	if err != nil {
		return nil, nil, err
	}
	if version, _ := archiveStart(head[:n], number); version == 1 {
		c.version = 1
	}
	c.dec, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.IgnoreChecksum(true), zstd.WithDecoderMaxMemory(2*archiveBlock))
	if err != nil {
		return nil, nil, err
	}
	defer c.dec.Close()
	for at := int64(archiveHead); at < info.Size && len(plain) < segment.MaxSize; {
		block, end, err := c.blockAt(at)
		if err == nil {
			plain, at = append(plain, block...), end
			continue
		}
		if !isNoFrame(err) {
			return nil, nil, err
		}
		bad = append(bad, err)
		plain = append(plain, make([]byte, archiveBlock)...) // of the last one perhaps more than it had: nothing is a frame there
		if end == 0 {
			if end, err = c.nextBlock(at + 1); err != nil {
				return nil, nil, err
			}
		}
		at = end
	}
	return plain, bad, nil
}

// blockAt inflates the block that begins at a byte of the file. end is the byte behind it, 0 if its
// head does not say.
func (c *segmentCopy) blockAt(at int64) (plain []byte, end int64, err error) {
	c.starts, c.last = []int64{at}, false
	head, err := c.seek(0)
	if err != nil || head == nil {
		return nil, 0, err
	}
	packed := make([]byte, binary.LittleEndian.Uint32(head[:]))
	n, err := readFull(c.f, packed, at+blockHead)
	if err != nil {
		return nil, 0, err
	}
	plain, err = c.unpack(c.dec, at, head, packed[:n], nil)
	if end = c.starts[1]; err != nil && end < c.size {
		c.starts, c.last = []int64{end}, false
		if _, after := c.seek(0); after != nil {
			end = 0 // the length may be damaged
		}
	}
	return plain, end, err
}

// nextBlock searches for a sound block from a byte of the file on, as far as two damaged blocks reach,
// and returns where it begins, or the size of the file.
func (c *segmentCopy) nextBlock(from int64) (int64, error) {
	rest := make([]byte, min(c.size-from, 4*archiveBlock))
	n, err := readFull(c.f, rest, from)
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
		if !isNoFrame(err) {
			return 0, err
		}
	}
}
