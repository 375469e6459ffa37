package dir

import (
	"context"
	"crypto/sha256"
	"errors"
	"iter"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/segment"
)

var (
	errBytes  = errors.New("the bytes of the piece do not match their SHA-256")
	errChain  = errors.New("the entry does not follow the one before it")
	errStop   = errors.New("the caller stops")
	errString = errors.New("the piece does not begin where the one before it ends")
)

// Read returns the pieces of an epoch, up to the newest entry at the time of the call; see remote.Remote.
func (r *Remote) Read(ctx context.Context, epoch uint64, from segment.LSN) iter.Seq2[remote.Piece, error] {
	return func(yield func(remote.Piece, error) bool) {
		if err := r.read(ctx, epoch, from, yield); err != nil && !errors.Is(err, errStop) {
			yield(remote.Piece{}, err)
		}
	}
}

// reading is the state of one call of Read.
type reading struct {
	r      *Remote
	epoch  uint64
	from   segment.LSN
	first  uint64 // number of the first entry that may have the position from
	yield  func(remote.Piece, error) bool
	before head // the previous entry; its number is 0 if it is damaged or not kept
	// damage found before the first piece; it is reported only if that piece begins after the position from
	damaged   []error
	begun     bool // a piece was yielded already
	truncated *remote.TruncatedError
}

// read yields pieces and damage. It returns its error, which the caller yields last.
func (r *Remote) read(ctx context.Context, epoch uint64, from segment.LSN,
	yield func(remote.Piece, error) bool) error {
	g := reading{r: r, epoch: epoch, from: from, yield: yield,
		truncated: &remote.TruncatedError{Place: r.Place(), Epoch: epoch, From: from}}
	newest, err := r.head(ctx)
	last := newest.position.Number
	switch {
	case err != nil && (last == 0 || !errors.Is(err, errs.ErrCorrupt)):
		return err // the newest entry may not be durable, so nothing is read
	case last == 0, err == nil && newest.position.Epoch < epoch:
		return g.truncated
	}
	floor, err := r.floor()
	if err != nil {
		return err
	}
	if floor > last {
		return g.truncated // everything up to the newest entry was pruned meanwhile
	}
	g.first, err = r.search(ctx, floor, last+1, func(h *head) bool {
		return h.position.Epoch > epoch || h.position.Epoch == epoch && h.position.At.LSN > from
	})
	if err != nil {
		return err
	}
	// The entry before the first piece shows that the piece follows it.
	for at := max(g.first, floor+1) - 1; at <= last; at++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if more, err := g.entry(at); !more || err != nil {
			return err
		}
	}
	return g.flushDamage()
}

// flushDamage yields the errors in g.damaged, and empties the list. It returns errStop if the caller wants no more
// values.
func (g *reading) flushDamage() error {
	for _, err := range g.damaged {
		if !g.yield(remote.Piece{}, err) {
			return errStop
		}
	}
	g.damaged = nil
	return nil
}

// entry reads entry n, and yields its piece if that is in the requested range. It records damage, and yields it at
// once or with the next piece. more is false if no later entry must be read.
func (g *reading) entry(n uint64) (more bool, err error) {
	h, b, err := g.r.readHead(n, true)
	if g.r.pruned(n, err) {
		return false, g.truncated
	}
	p := &h.position
	if err == nil {
		if p.Epoch > g.epoch {
			if n == g.first && g.before.position.Epoch != g.epoch && g.damaged == nil {
				return false, g.truncated // no entry of the epoch is kept
			}
			return false, g.flushDamage()
		}
		if verr := h.verify(b, g.before); verr != nil {
			err = &errs.CorruptionError{Path: g.r.entry(n), Offset: -1, Err: verr}
		}
	}
	known := g.before.position.Number > 0
	g.before = h
	switch {
	case n < g.first && (err == nil || errors.Is(err, errs.ErrCorrupt)):
		return true, nil
	case errors.Is(err, errs.ErrCorrupt):
		if g.damaged = append(g.damaged, err); g.begun {
			err = g.flushDamage()
			return err == nil, err
		}
		return true, nil
	case err != nil:
		return false, err
	case !g.begun && h.from.LSN > g.from && (h.kind == kindAnchor || !known && g.damaged == nil):
		g.truncated.Oldest = h.from.LSN
		return false, g.truncated
	case h.kind == kindAnchor:
		return true, nil
	}
	if !g.begun && h.from.LSN <= g.from {
		g.damaged = nil // in what is before from
	}
	if g.begun = true; g.flushDamage() != nil || !g.yield(h.piece(b), nil) {
		return false, errStop
	}
	return true, nil
}

// verify verifies the bytes b of the entry that has the head h. prev is the head of the previous entry; its number is
// 0 if it is unknown. If prev is known, verify also checks that h follows prev.
func (h *head) verify(b []byte, prev head) error {
	switch p := &prev.position; {
	case sha256.Sum256(b) != h.sha:
		return errBytes
	case p.Number == 0:
	case h.previous != prev.sum:
		return errChain
	case h.kind == kindPiece && (h.from != p.At || h.position.Epoch != p.Epoch):
		return errString
	}
	return nil
}

func (h *head) piece(b []byte) remote.Piece {
	p := &h.position
	return remote.Piece{From: h.from, To: p.At, Epoch: p.Epoch, Machine: p.Machine, Request: p.Request,
		Format: p.Format, Time: p.Time, Bytes: b}
}

// Epochs returns the epochs of which entries are kept; see remote.Remote.
func (r *Remote) Epochs(ctx context.Context) (list []remote.Epoch, err error) {
	if err := r.checkIdentity(); err != nil {
		return nil, err
	}
	last, floor, err := r.last()
	if err != nil || last == 0 {
		return nil, err
	}
	for at := floor; at <= last; {
		first, _, err := r.readHead(at, false)
		if r.pruned(at, err) {
			return r.Epochs(ctx)
		}
		if errors.Is(err, errs.ErrCorrupt) {
			at++ // Read reports it
			continue
		}
		if err != nil {
			return nil, err
		}
		next, err := r.search(ctx, at, last+1, func(h *head) bool { return h.position.Epoch > first.position.Epoch })
		if err != nil {
			return nil, err
		}
		end := first
		for i := next - 1; i > at; i-- { // the last one that is not damaged
			if end, _, err = r.readHead(i, false); !errors.Is(err, errs.ErrCorrupt) {
				break
			}
			end = first
		}
		if err != nil && !errors.Is(err, errs.ErrCorrupt) {
			return nil, err
		}
		p := &first.position
		list = append(list, remote.Epoch{Number: p.Epoch, Geometry: p.Geometry, Log: p.Log, From: first.from,
			To: end.position.At, Entries: next - at, Began: p.Time, Ended: end.position.Time})
		at = next
	}
	return list, nil
}
