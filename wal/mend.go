package wal

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

// The archive keeps nothing that is damaged. The checksum of a block proves only that the block
// is what was compressed, so a segment with a damaged frame could become a copy with sound blocks,
// in which a reader of blocks finds no damage, and which a purge cannot read. Therefore:
//
//   - the archiver checks each frame of a segment, and archives a damaged segment as a repair does,
//     with gaps in place of the damaged frames (package segment);
//   - verify checks each frame of a copy;
//   - repair and purge replace a damaged copy by one with gaps. A purge overwrites the damaged one,
//     because it may contain what is purged.
//
// The archiver, a purge and a repair name what was lost: the archiver in an event, a purge in its report, a
// repair in its plan. After a repair, verify finds the gaps and names them.

// LostError reports a part of the history that was lost because a file of the log was damaged.
type LostError struct {
	Path     string // path of the file, relative to the store
	From, To LSN    // versions in this range are lost
	Err      error  // error that describes the damage
}

// Error returns the message, in one line.
func (e *LostError) Error() string {
	return fmt.Sprintf("%s was damaged: the history has lost the versions from %d to %d, but no current memory is "+
		"lost: %v",
		e.Path, e.From, e.To, e.Err)
}

// Unwrap returns the error that describes the damage.
func (e *LostError) Unwrap() error { return e.Err }

// lostIn returns a *LostError for each of the given gaps in the file at path.
func lostIn(path string, gaps []Gap) (list []error) {
	for _, g := range gaps {
		list = append(list, &LostError{Path: path, From: g.At, To: g.To, Err: g.Err})
	}
	return list
}

// lacks returns the number of bytes that are missing in the copy of a segment: the sizes of its gaps. damaged reports
// whether a part of the copy cannot be read.
func (l *FileLog) lacks(number uint64) (bytes uint64, damaged bool, err error) {
	holes, gaps, err := l.Past().CheckArchived(context.Background(), number)
	if err != nil {
		if past.IsNoFrame(err) {
			err = nil
		}
		return 0, true, err
	}
	for _, g := range gaps {
		bytes += g.To - g.From
	}
	return bytes, len(holes) > 0, nil
}

// copySegment writes the copy of a segment into archive/. It puts gaps in place of damaged frames, and returns the
// gaps. It keeps an existing copy, and returns no gaps, if that copy is complete, or can be read as a whole and lacks
// no more bytes than a new copy would. When ctx ends, it stops and returns the error of ctx.
func (l *FileLog) copySegment(ctx context.Context, number uint64) (gaps []Gap, err error) {
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
	f, err := l.Past().OpenSegment(number)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	end, err := l.Past().EndOf(number)
	if err != nil {
		return nil, err
	}
	prev, err := l.endBefore(ctx, number, f)
	if err != nil {
		return nil, err
	}
	s := past.NewSalvaged(f, l.geo)
	if gaps, err = s.Patch(ctx, number, prev, end); err != nil {
		return nil, err
	}
	from := past.Source(f)
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
	return gaps, l.putCopy(number, until{from, ctx})
}

// until is a past.Source whose reads fail once ctx has ended.
type until struct {
	past.Source
	ctx context.Context
}

// ReadAt implements io.ReaderAt.
func (u until) ReadAt(b []byte, off int64) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.Source.ReadAt(b, off)
}

// Mended is the readable part of a damaged copy of a segment in the archive.
type Mended struct {
	Lost []error // lost parts, each a *LostError
	b    []byte  // bytes of the segment, with gaps
	geo  segment.Geometry
}

// Mend reads the undamaged blocks and frames of a damaged copy of a segment. It returns nil if no frame can be read, or
// if the copy belongs to another log. It does not change the copy.
func (a Archive) Mend(ctx context.Context, number uint64) (*Mended, error) {
	path := "wal/" + past.CopyName(number)
	plain, bad, err := past.SalvageCopy(a.l.o.FS, a.l.o.wal(past.CopyName(number)), number)
	if err != nil {
		return nil, err
	}
	m := &Mended{geo: a.l.geo}
	if start, _, err := segment.ParseStart(plain); err == nil && start.Number == number {
		m.geo = start.Geometry
		if start.UUID != a.l.geo.UUID {
			return nil, nil // mending would not make it a copy of this log
		}
	}
	end := Mark{LSN: m.geo.End(number)}
	var prev Mark
	if m.geo == a.l.geo {
		if end, err = a.l.Past().EndOf(number); err != nil {
			return nil, err
		}
		if prev, err = a.l.endBefore(ctx, number, memory{bytes.NewReader(plain), path}); err != nil {
			return nil, err
		}
	}
	s := past.NewSalvaged(memory{bytes.NewReader(plain), path}, m.geo)
	gaps, err := s.Patch(ctx, number, prev, end)
	if err != nil || s.Frames() == 0 {
		return nil, err
	}
	m.Lost = lostIn(path, gaps)
	if len(gaps) == 0 && len(bad) > 0 && end.Sum == 0 { // the end of the frames is unknown
		m.Lost = []error{&LostError{Path: path, From: m.geo.Start(number) + uint64(s.Size()), To: end.LSN, Err: bad[0]}}
	}
	m.b = make([]byte, s.Size())
	if n, err := past.ReadFull(s, m.b, 0); err != nil || n < len(m.b) {
		return nil, fmt.Errorf("%s: only %d of %d bytes can be read: %w", path, n, len(m.b),
			errors.Join(segment.ErrPayload, err))
	}
	return m, nil
}

// WriteMended replaces a damaged copy of a segment in the archive by its readable part m.
func (a Archive) WriteMended(held *Held, number uint64, m *Mended) error {
	if err := held.proves(a.l); err != nil {
		return err
	}
	if err := a.l.putCopy(number, memory{bytes.NewReader(m.b), past.CopyName(number)}); err != nil {
		return a.l.ioError("rewriting", a.l.o.wal(past.CopyName(number)), err)
	}
	return nil
}

// memory is the content of a segment in memory. It is a past.Source, which can be read like a file.
type memory struct {
	*bytes.Reader
	name string
}

// Name returns the path of the file from which the bytes were read.
func (m memory) Name() string { return m.name }
