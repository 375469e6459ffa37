package remote

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

// At returns the position at which the bytes of the piece begin, according to the piece's first frame. It returns false
// if the piece is too short for a frame. At does not verify the piece: see Check.
func (p *Piece) At() (segment.LSN, bool) {
	if len(p.Bytes) < segment.HeaderSize {
		return 0, false
	}
	return binary.LittleEndian.Uint64(p.Bytes[16:]), true
}

// Check verifies the bytes of a piece. They must be whole batches of one segment and end at To. The first frame must
// follow From, and each other frame must follow the frame before it. Frames whose payload a purge has erased are valid.
// The error is a *errs.CorruptionError.
func (p *Piece) Check(geo segment.Geometry) error {
	err := p.check(geo)
	if err == nil {
		return nil
	}
	return &errs.CorruptionError{Path: fmt.Sprintf("piece from %d to %d", p.From.LSN, p.To.LSN), Offset: -1, Err: err}
}

func (p *Piece) check(geo segment.Geometry) error {
	at, ok := p.At()
	switch {
	case !ok:
		return fmt.Errorf("has only %d bytes", len(p.Bytes))
	case !geo.Holds(at) || !geo.Holds(p.From.LSN) || at < p.From.LSN:
		return fmt.Errorf("impossible positions: the piece continues from position %d, but its first frame is at "+
			"position %d", p.From.LSN, at)
	case uint64(geo.Offset(at))+uint64(len(p.Bytes)) > geo.Size || p.To.LSN != at+uint64(len(p.Bytes)):
		return fmt.Errorf("the piece has an impossible length: %d bytes at position %d", len(p.Bytes), at)
	}
	number := geo.Number(at)
	src := source{bytes.NewReader(p.Bytes), geo.Offset(at)}
	w := past.NewWalker(geo, past.OneSegment(number, src), p.From)
	if p.From.LSN == at && p.From.Sum == 0 && geo.Offset(at) == 0 { // the first segment of a log follows nothing
		s, h, err := w.Start(number)
		if err != nil {
			return err
		}
		if s.PrevEnd != 0 {
			return fmt.Errorf("the piece begins a log, but the header of its segment says that the segment follows "+
				"position %d", s.PrevEnd)
		}
		w.At, w.Linked = past.Mark{LSN: h.End(), Sum: h.Sum}, true
	}
	more := false
	for w.At.LSN < p.To.LSN {
		h, _, err := w.Next(p.To.LSN)
		if err != nil {
			return err
		}
		more = h.More()
	}
	switch {
	case w.At != p.To:
		return fmt.Errorf("the frames of the piece end at position %d with chain hash %016x, not at position %d with "+
			"chain hash %016x", w.At.LSN, w.At.Sum, p.To.LSN, p.To.Sum)
	case more:
		return fmt.Errorf("the piece ends within a batch")
	}
	return nil
}

// source makes the bytes of a piece readable at the offsets that they have in the segment.
type source struct {
	r  *bytes.Reader
	at int64
}

// ReadAt reads len(b) bytes at the offset off of the segment. The part of the segment before the piece reads as zeros,
// which contain no frame.
func (s source) ReadAt(b []byte, off int64) (int, error) {
	if off >= s.at {
		return s.r.ReadAt(b, off-s.at)
	}
	n := int(min(int64(len(b)), s.at-off))
	clear(b[:n])
	if n == len(b) {
		return n, nil
	}
	m, err := s.r.ReadAt(b[n:], 0)
	return n + m, err
}

// Name returns the name of the source for messages.
func (s source) Name() string { return "piece" }

// Valid returns an error that matches errs.ErrInvalid if no sender of this package can have made the piece. A remote
// calls Valid before it adds the piece. Valid does not look at the bytes of the piece, which may be encrypted, but
// checks their number.
func (p *Piece) Valid() error {
	switch {
	case p.Epoch == 0, len(p.Bytes) == 0, p.To.LSN <= p.From.LSN, len(p.Bytes) > segment.MaxSize:
		return fmt.Errorf("%w: piece from %d to %d of epoch %d with %d bytes", errs.ErrInvalid, p.From.LSN, p.To.LSN,
			p.Epoch, len(p.Bytes))
	}
	return validTime(p.Time)
}

// Valid returns an error that matches errs.ErrInvalid if no epoch can begin with the anchor.
func (a *Anchor) Valid() error {
	if !a.Geometry.Valid() || !a.Geometry.Holds(a.At.LSN) {
		return fmt.Errorf("%w: an epoch cannot begin at position %d of a log with segments of %d bytes",
			errs.ErrInvalid, a.At.LSN, a.Geometry.Size)
	}
	return validTime(a.Time)
}

// Valid returns an error that matches errs.ErrInvalid if no sender can have made the snapshot.
func (s *Snapshot) Valid() error {
	if !s.Geometry.Valid() || !s.Geometry.Holds(s.Begin.LSN) || s.End.LSN < s.Begin.LSN || s.Epoch == 0 {
		return fmt.Errorf("%w: snapshot %s of epoch %d from %d to %d", errs.ErrInvalid, s.ID, s.Epoch, s.Begin.LSN,
			s.End.LSN)
	}
	return validTime(s.Time)
}

// validTime returns an error if a time cannot be represented in the formats of this package, which store microseconds.
func validTime(t time.Time) error {
	if micro := t.UnixMicro(); micro < 0 || micro > past.MostTime {
		return fmt.Errorf("%w: time %s is before 1970 or after 2398", errs.ErrInvalid, t.UTC().Format(time.RFC3339))
	}
	return nil
}
