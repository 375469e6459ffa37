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

// Piece is a part of the log: whole batches of one segment.
type Piece struct {
	From  Mark   // position and chain hash at which the log ends before the piece
	At    LSN    // position at which Bytes begin: From.LSN, or the start of the next segment
	To    Mark   // position and chain hash at which the piece ends
	Bytes []byte // frames with their padding; valid until the next iteration
}

// GapError is about a part of the log that cannot be read: the part was pruned, is damaged, or a repair has found
// nothing there. It wraps the reason.
type GapError struct {
	From, To LSN // reading continues at To, which is the limit if nothing after From can be read
	Err      error
}

// Error returns the message, in one line.
func (e *GapError) Error() string {
	return fmt.Sprintf("the log cannot be read from %d to %d, it continues at %d: %v", e.From, e.To, e.To, e.Err)
}

// Unwrap returns the reason: *errs.TruncatedError, *errs.HistoryGoneError, *errs.CorruptionError,
// *errs.GapError, or *EndedError, which may wrap one of the others.
func (e *GapError) Unwrap() error { return e.Err }

// pieceSize is the size in bytes at which a piece ends with the next end of a batch.
const pieceSize = 1 << 20

// Pieces returns the log in [from, to) as raw bytes. from must be a position at which a batch ends. If it has a chain
// hash, the first frame must follow that hash; otherwise the first frame is verified only by its own checksum. If from
// is 0, reading begins as far back as there is no hole. to must be a position at which a frame ends, at or below the
// durable position (FileLog.Durable or the attested position of a checkpoint); a batch that ends above it is omitted.
//
// A gap yields a *GapError; the next iteration continues after the gap, from the next end of a batch. Any other error
// ends the reading.
//
// If another log begins within [from, to), the gap before it wraps a *EndedError with the reason. If the log does not
// contain from, because another log has replaced it, the first gap wraps that reason. Pieces does not report a purge:
// Continues does.
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

// gathering combines frames into pieces of whole batches.
type gathering struct {
	ctx     context.Context
	p       *Log
	yield   func(Piece, error) bool
	endings []Ending // empty if wal/ended cannot be read: then the reason of an end is unknown
	from    Mark
	to      LSN

	border Mark      // position at which the last whole batch ends, or the reading began
	at     LSN       // position at which the next frame is expected
	piece  Piece     // valid if buf has bytes
	buf    []byte    // whole batches, and the frames of a batch that has not ended
	whole  int       // number of bytes of buf that are whole batches
	gap    *GapError // a gap that is not reported yet, because its To is unknown
	rest   bool      // frames up to the next border may belong to a batch that began in the gap
}

// visit receives a frame with its bytes, or an error in place of frames.
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

// flush yields the piece. It drops the bytes after the last whole batch of the piece: a gap or the limit comes next.
func (g *gathering) flush() bool {
	p := g.piece
	p.To, p.Bytes = g.border, g.buf[:g.whole]
	ok := g.whole == 0 || g.yield(p, nil)
	g.buf, g.whole = g.buf[:0], 0
	return ok
}

// broken begins a gap. A nil err means that nothing is missing, and that another log begins.
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

// tell yields the gap that was begun.
func (g *gathering) tell() bool {
	gap := g.gap
	g.gap, g.rest = nil, false
	if err := g.ended(gap); err != nil {
		gap.Err = err
	}
	return g.yield(Piece{}, gap)
}

// ended returns the *EndedError for a gap after which another log begins, or for a log that has replaced the one that
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

// end yields the remaining batches at the limit. If another log begins there that has no entry yet, it yields a gap,
// too.
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
