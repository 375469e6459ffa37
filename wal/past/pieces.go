package past

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/segment"
)

// Piece is a part of the log: whole batches of one segment, as raw bytes.
type Piece struct {
	From  Mark   // the mark where the log ends before the piece
	At    LSN    // position where Bytes begin: From.LSN, or the start of the next segment
	To    Mark   // the mark where the log ends with the piece
	Bytes []byte // frames with their padding; valid until the next iteration
}

// GapError reports a part of the log that cannot be read: it was pruned, it is damaged, or a repair has
// recorded that its frames are gone. It wraps the reason.
type GapError struct {
	// Positions between which nothing can be read; reading continues at To, which is the limit if nothing after
	// From can be read.
	From, To LSN
	Err      error
}

// Error returns the message, in one line.
func (e *GapError) Error() string {
	return fmt.Sprintf("the log cannot be read from position %d to %d; it continues at %d: %v", e.From, e.To, e.To, e.Err)
}

// Unwrap returns the reason: *errs.TruncatedError, *errs.HistoryGoneError, *errs.CorruptionError,
// *errs.GapError, or *EndedError, which may wrap one of the others.
func (e *GapError) Unwrap() error { return e.Err }

// pieceSize is the size in bytes from which Pieces ends a piece at the next end of a batch.
const pieceSize = 1 << 20

// Pieces returns the log in [from, to) as raw bytes. from must be where a batch ends. If from has a chain hash,
// the first frame must follow it; otherwise the first frame is verified only by its own checksum. If from is 0,
// reading begins at the lowest position from which on there is no hole. to must be where a frame ends, at or
// below what is durable (FileLog.Durable or the attested mark of a checkpoint). A batch that ends above to is
// omitted.
//
// A gap yields a *GapError; the next iteration yields what follows it, from the next end of a batch. Any other
// error ends the reading.
//
// If another log begins within [from, to), the gap before it wraps a *EndedError with the reason. If the log
// does not contain from, because another log has replaced it, the first gap wraps that reason. Pieces does not
// report a purge: Continues does.
func (p *Log) Pieces(ctx context.Context, from Mark, to LSN) iter.Seq2[Piece, error] {
	return func(yield func(Piece, error) bool) {
		if from.LSN > to {
			if err := p.contains(ctx, from); err != nil {
				yield(Piece{}, err)
			}
			return
		}
		if from.LSN == 0 {
			oldest, _, _, err := p.Oldest(to)
			if err != nil {
				yield(Piece{}, err)
				return
			}
			from.LSN = oldest
		}
		list, err := p.Endings()
		if err != nil && !errors.Is(err, errs.ErrCorrupt) && !errors.Is(err, errs.ErrNewerFormat) {
			yield(Piece{}, err)
			return
		}
		g := gathering{ctx: ctx, p: p, yield: yield, endings: list, from: from, border: from, at: from.LSN, to: to}
		err = p.walkRaw(ctx, from, to, g.visit)
		switch {
		case errors.Is(err, errStop):
		case err != nil && (!g.flush() || !yield(Piece{}, err)):
		case err == nil:
			g.end()
		}
	}
}

// gathering combines frames of the log into pieces and gaps, for Pieces.
type gathering struct {
	ctx   context.Context
	p     *Log
	yield func(Piece, error) bool
	// Recorded ends of logs; empty if wal/ended cannot be read: then the reason of an end is unknown.
	endings []Ending
	from    Mark
	to      LSN

	border Mark      // the mark where the last whole batch ends, or where the reading began
	at     LSN       // position where the next frame is expected
	piece  Piece     // the next piece, valid if buf has bytes
	buf    []byte    // bytes of whole batches, and of the frames of a batch that has not ended
	whole  int       // number of bytes of buf that are whole batches
	gap    *GapError // a gap that was not yielded yet, because To is unknown
	rest   bool      // frames up to the next border may belong to a batch that began in the gap
}

// visit receives the next frame with its bytes, or an error in place of frames that cannot be read. It returns
// false to end the reading.
func (g *gathering) visit(h *segment.Header, payload, raw []byte, err error) bool {
	if err != nil {
		return g.broken(err)
	}
	start := h.Kind == segment.KindStart && g.p.Geometry.Offset(h.LSN) == 0
	if !start && h.LSN != g.at && g.gap == nil && !g.broken(nil) { // see Log.hole: another log begins
		return false
	}
	end := Mark{h.End(), h.Follow(payload)}
	if g.at = end.LSN; g.gap != nil {
		if g.rest && !start {
			g.rest = h.More()
			g.gap.To, g.border = end.LSN, end
			return true
		}
		g.border = Mark{h.LSN, h.Previous}
		g.gap.To = h.LSN
		if !g.tell() {
			return false
		}
	}
	if len(g.buf) > 0 && g.p.Geometry.Number(h.LSN) != g.p.Geometry.Number(g.piece.At) && !g.flush() {
		return false
	}
	if len(g.buf) == 0 {
		g.piece = Piece{From: g.border, At: h.LSN}
	}
	if g.buf = append(g.buf, raw...); h.More() {
		return true
	}
	g.whole, g.border = len(g.buf), end
	return start || len(g.buf) < pieceSize || g.flush()
}

// flush yields the gathered frames as a Piece. It drops the frames after the last whole batch, because a gap or the end
// of the reading follows them. It returns false to end the reading.
func (g *gathering) flush() bool {
	p := g.piece
	p.To, p.Bytes = g.border, g.buf[:g.whole]
	ok := g.whole == 0 || g.yield(p, nil)
	g.buf, g.whole = g.buf[:0], 0
	return ok
}

// broken begins a gap with the reason err, after the frames gathered so far. If err is nil, nothing is
// missing, but another log begins there. It returns false to end the reading.
func (g *gathering) broken(err error) bool {
	if !g.flush() {
		return false
	}
	if g.gap == nil {
		g.gap = &GapError{From: g.border.LSN, Err: err}
	}
	var hole *errs.GapError
	g.rest = errors.As(err, &hole)
	return true
}

// tell yields the gap that was begun, as a *GapError. It returns false to end the reading.
func (g *gathering) tell() bool {
	gap := g.gap
	g.gap, g.rest = nil, false
	if err := g.ended(gap); err != nil {
		gap.Err = err
	}
	return g.yield(Piece{}, gap)
}

// ended returns an *EndedError if another log begins after a gap, or if another log has replaced the log that
// the reader followed.
func (g *gathering) ended(gap *GapError) error {
	for i := range g.endings {
		if e := &g.endings[i]; e.Reason.moves() && gap.From < e.Next && e.Next <= gap.To {
			return e.error(gap.From, gap.Err)
		}
	}
	if gap.Err == nil {
		return (&Ending{}).error(gap.From, nil)
	}
	if gap.From != g.from.LSN {
		return nil
	}
	var ended *EndedError
	if errors.As(g.p.contains(g.ctx, g.from), &ended) {
		ended.Err = gap.Err
		return ended
	}
	return nil
}

// end yields the remaining piece and gap when the limit is reached. If another log begins there that has no
// entry yet, that is a gap, too.
func (g *gathering) end() bool {
	if g.gap == nil {
		if !g.flush() {
			return false
		}
		last := GapError{From: g.border.LSN, To: g.to}
		if last.To <= last.From || !slices.ContainsFunc(g.endings, func(e Ending) bool {
			return e.Reason.moves() && last.From < e.Next && e.Next <= last.To
		}) {
			return true
		}
		g.gap = &last
	}
	g.gap.To = g.to
	return g.tell()
}
