package wal

import (
	"context"
	"errors"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/segment"
)

// From is where Entries begins to read, for a caller that has seen everything before a position and
// no later entry: 0 is as far back as there is no hole. The position need not be where a frame
// begins. *errs.TruncatedError when something between it and the oldest entry that is kept is gone.
func (p *Past) From(ctx context.Context, from, to LSN) (LSN, error) {
	if from >= to {
		return to, nil
	}
	oldest, began, _, err := p.oldest(to)
	switch {
	case err != nil:
		return 0, err
	case from == 0 || from >= began && from <= oldest:
		return oldest, nil
	case from < oldest:
		return 0, &errs.TruncatedError{Oldest: oldest}
	}
	number := p.Geometry.Number(from)
	_, h, err := p.start(number)
	if err != nil {
		return 0, err
	}
	at := h.End()
	if from <= at {
		return at, nil
	}
	var lost error
	err = p.walk(ctx, Mark{h.End(), h.Sum}, min(to, p.Geometry.End(number)), func(h *segment.Header, _ []byte, err error) bool {
		if err != nil {
			lost = err
			return false
		}
		if h.LSN < from {
			at = h.End()
		}
		return h.LSN < from
	})
	if errors.Is(err, errStop) {
		err = lost
	}
	return at, err
}

// Since is where the first entry that was committed at a time or later begins, or the end.
// *errs.TruncatedError when the log is not kept back to then.
func (p *Past) Since(ctx context.Context, t time.Time, to LSN) (LSN, error) {
	oldest, _, whole, err := p.oldest(to)
	if err != nil || oldest >= to {
		return to, err
	}
	since := t.UnixMicro()
	from := oldest
	for n := p.Geometry.Number(to - 1); p.Geometry.Start(n) >= p.Geometry.Size; n-- {
		_, h, err := p.start(n)
		if err != nil {
			return 0, err
		}
		from = h.End()
		if h.Time < since {
			whole = true
			break
		}
		if from <= oldest {
			break
		}
	}
	if !whole {
		return 0, &errs.TruncatedError{Oldest: oldest}
	}
	at := to
	var lost error
	err = p.walk(ctx, Mark{LSN: from}, to, func(h *segment.Header, _ []byte, err error) bool {
		switch {
		case err != nil:
			lost = err
			return false
		case h.Kind >= kindUser && h.Time >= since:
			at = h.LSN
			return false
		}
		return true
	})
	if errors.Is(err, errStop) {
		err = lost
	}
	return at, err
}
