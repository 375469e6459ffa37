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

// Piece is a part of the log: complete batches of one segment, as raw bytes.
type Piece struct {
	From  Mark   // mark at which the log before the piece ends
	At    LSN    // position where Bytes begin: From.LSN, or the start of the next segment
	To    Mark   // mark at which the piece ends
	Bytes []byte // frames with their padding; valid until the next iteration
}

// GapError means that a part of the log cannot be read: it is no longer kept, it is damaged, or a repair has recorded
// that its frames are lost. It wraps the reason.
type GapError struct {
	// The log cannot be read from From to To. Reading continues at To. If nothing after From can be read, To is the end
	// of the requested range.
	From, To LSN
	Err      error
}

// Error returns the message, in one line.
func (e *GapError) Error() string {
	return fmt.Sprintf("the log cannot be read from position %d to %d; it continues at %d: %v", e.From, e.To, e.To, e.Err)
}

// Unwrap returns the reason: *errs.TruncatedError, *errs.HistoryGoneError, *errs.CorruptionError, *errs.GapError or
// *EndedError. An *EndedError may wrap one of the others.
func (e *GapError) Unwrap() error { return e.Err }

// pieceSize is the size in bytes from which a piece ends at the next end of a batch.
const pieceSize = 1 << 20

// Pieces yields the log in [from, to) as raw bytes. A batch must end at from. If from has a chain hash, the first
// frame must follow this hash; otherwise only its own checksum is verified. If from is 0, Pieces begins at the
// lowest position after which the log has no hole. The position to must be the end of a frame, and the log must be
// durable up to that position (see FileLog.Durable and the attested mark of a checkpoint). A batch that ends above
// that position is left out.
//
// For a gap, Pieces yields a *GapError, and the next iteration yields what follows, from the next end of a batch.
// Any other error ends the iteration.
//
// If another log begins within [from, to), the *GapError before it wraps an *EndedError with the reason. If
// another log has replaced the log with the mark from, the first *GapError wraps this reason. Pieces does not
// report a purge, but Continues does.
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

// gathering is the state of one iteration of Pieces, which combines frames into pieces and gaps.
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

// visit processes the next frame with its raw bytes, or an error for frames that cannot be read. It returns false if
// the iteration must end.
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

// flush yields the collected frames as a Piece. It drops the frames after the last complete batch, because a gap or the
// end of the range follows. It returns false if the iteration must end.
func (g *gathering) flush() bool {
	p := g.piece
	p.To, p.Bytes = g.border, g.buf[:g.whole]
	ok := g.whole == 0 || g.yield(p, nil)
	g.buf, g.whole = g.buf[:0], 0
	return ok
}

// broken begins a gap after the collected frames, with the reason err. If err is nil, nothing is missing, but another
// log begins. broken returns false if the iteration must end.
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

// tell yields the current gap as a *GapError. It returns false if the iteration must end.
func (g *gathering) tell() bool {
	gap := g.gap
	g.gap, g.rest = nil, false
	if err := g.ended(gap); err != nil {
		gap.Err = err
	}
	return g.yield(Piece{}, gap)
}

// ended returns an *EndedError if another log begins after the gap, or if another log has replaced the log with the
// mark from. Otherwise it returns nil.
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

// end yields the last piece or gap when the end of the range is reached. If another log begins there but has no entry
// yet, end yields a gap too. It returns false if the caller has stopped the iteration.
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
