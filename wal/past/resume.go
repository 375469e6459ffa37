package past

import (
	"context"
	"errors"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/segment"
)

// From returns the position at which a caller must begin to read with Entries, if the caller has already read all
// entries before from, and none at or after from. A frame need not begin at from. If from is 0, From returns the
// lowest position after which the log has no hole. If entries at or after from are no longer kept, the error is a
// *errs.TruncatedError.
func (p *Log) From(ctx context.Context, from, to LSN) (LSN, error) {
	if from >= to {
		return to, nil
	}
	oldest, began, _, err := p.Oldest(to)
	switch {
	case err != nil:
		return 0, err
	case from == 0 || from >= began && from <= oldest:
		return oldest, nil
	case from < oldest:
		return 0, &errs.TruncatedError{Oldest: oldest}
	}
	number := p.Geometry.Number(from)
	_, h, err := p.Start(number)
	if err != nil {
		return 0, err
	}
	at := h.End()
	if from <= at {
		return at, nil
	}
	var lost error
	err = p.walk(ctx, Mark{h.End(), h.Sum}, min(to, p.Geometry.End(number)),
		func(h *segment.Header, _ []byte, err error) bool {
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

// Since returns the position of the first entry below end whose clock reading (Entry.Reading) is t or later, or
// end if no entry has such a reading. Readings are not in order: a later entry may have an earlier reading. If the
// log may have lost entries with a reading of t or later, because the oldest kept entry has such a reading too,
// the error is a *errs.TruncatedError.
//
// The times of frames are in order, and a reading is never later than the time of its frame. So the times of the
// segments determine the segment in which the search begins: no earlier segment has an entry with such a reading.
func (p *Log) Since(ctx context.Context, t time.Time, end LSN) (LSN, error) {
	oldest, _, whole, err := p.Oldest(end)
	if err != nil || oldest >= end {
		return end, err
	}
	since := t.UnixMicro()
	from := oldest
	for n := p.Geometry.Number(end - 1); p.Geometry.Start(n) >= p.Geometry.Size; n-- {
		_, h, err := p.Start(n)
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
	at := end
	var lost error
	err = p.walk(ctx, Mark{LSN: from}, end, func(h *segment.Header, payload []byte, err error) bool {
		if err != nil {
			lost = err
			return false
		}
		if h.Kind < KindUser {
			return true
		}
		if _, _, f := h.Split(payload); f.Reading < since {
			whole = true
			return true
		}
		at = h.LSN
		return false
	})
	if errors.Is(err, errStop) {
		err = lost
	}
	if err == nil && !whole {
		return 0, &errs.TruncatedError{Oldest: oldest}
	}
	return at, err
}

// Until returns the LSN of the last entry of the last batch in [from, to) whose clock reading is t or earlier, or 0 if
// there is no such batch. Readings are not in order: a batch that was committed while the clock was ahead has a later
// reading than the batches after it. So Until reads the whole range. It skips entries that cannot be read; a reader
// that begins at the returned position gets their errors.
func (p *Log) Until(ctx context.Context, from Mark, t time.Time, to LSN) (last LSN, err error) {
	until := t.UnixMicro()
	err = p.walk(ctx, from, to, func(h *segment.Header, payload []byte, err error) bool {
		if err != nil || h.Kind < KindUser || h.More() {
			return true
		}
		if _, _, f := h.Split(payload); f.Reading <= until {
			last = h.LSN
		}
		return true
	})
	return last, err
}
