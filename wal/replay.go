package wal

import (
	"context"
	"errors"
	"sort"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

// replay reads and applies the frames up to the first position without a valid frame. It then decides whether the log
// ends there, perhaps with a torn tail, or is damaged there. The log is damaged if a later position is known to have
// been durable. replay returns the mark at the end of the last complete batch, and the damage or nil.
func (l *FileLog) replay(ctx context.Context, attested LSN, chain Mark) (Mark, *errs.CorruptionError, error) {
	s := &l.state
	end := s.w.At // after the last complete batch
	passed := s.w.At.LSN >= chain.LSN
	wrong := s.w.At.LSN == chain.LSN && chain.Sum != 0 && s.w.At.Sum != chain.Sum
	var none *past.NoFrameError
	for none == nil && !wrong {
		for n := 0; n == 0 || s.w.Buffered(); n++ {
			h, payload, err := s.w.Next(1 << 63)
			if errors.As(err, &none) {
				break
			}
			if err != nil {
				return end, nil, err
			}
			if !passed && h.End() >= chain.LSN {
				passed = true
				if wrong = chain.Sum != 0 && (h.End() != chain.LSN || h.Sum != chain.Sum); wrong {
					none = &past.NoFrameError{At: h.LSN,
						Here: errors.New("the frame differs from the frame that the checkpoint records")}
					break
				}
			}
			l.push(&h, payload)
			l.report.Bytes += int64(h.Size())
			if h.Kind >= past.KindUser {
				l.report.Replayed++
			}
			if !h.More() {
				end = s.w.At
			}
		}
		if err := l.applyTo(end.LSN); err != nil {
			return end, nil, err
		}
		s.own(l.effectsOf)
		if err := ctx.Err(); err != nil {
			return end, nil, err
		}
	}
	if wrong && none == nil {
		none = &past.NoFrameError{At: s.w.At.LSN, Here: errors.New("the positions in the checkpoint are inconsistent")}
	}
	// What is left is the beginning of an incomplete batch.
	s.drop(len(s.ahead))
	if s.lastEntry >= end.LSN {
		s.lastEntry = end.LSN - 1 // there may be an entry anywhere before
	}
	s.w = past.NewWalker(l.geo, l.source, end)
	s.w.Linked = true
	s.forgetPending()
	behind := wrong || end.LSN < attested
	if _, err := l.segment(l.geo.Number(end.LSN - 1)); errors.Is(err, past.ErrNoSegment) {
		behind = true // the checkpoint's marks are where there is no log
	} else if err != nil {
		return end, nil, err
	}
	// Within one boot the page records how far any process has written. A process that appended after a bad
	// position would have moved the tail first.
	if !behind && (l.was.tail == 0 || end.LSN < l.was.tail) {
		var err error
		if behind, err = l.attestedBehind(none.At); err != nil {
			return end, nil, err // a read error does not mean that the tail is torn
		}
	}
	if behind {
		c := l.corruption(none)
		l.o.Logger.Error("the log is damaged", "at", none.At, "err", none)
		l.o.Event(Event{Kind: EventCorruption, Path: c.Path, LSN: none.At, Err: c})
		return end, c, nil
	}
	l.report.TornTail = nil
	if !errors.Is(none.Here, segment.ErrEnd) || none.At != end.LSN {
		l.report.TornTail = &TornTail{At: end.LSN, Err: none.Here}
	}
	return end, nil, nil
}

// attestedBehind reports whether a frame after the position bad records that bad was already durable when the frame
// was written. If there is such a frame, the log is damaged at bad and does not end there. attestedBehind searches
// everything after bad, even after holes. If a file cannot be read, it returns the error, because it is then unknown
// whether the log is damaged.
func (l *FileLog) attestedBehind(bad LSN) (bool, error) {
	names, err := l.o.FS.ReadDir(l.o.walDir())
	if err != nil {
		return false, l.ioError("reading", l.o.walDir(), err)
	}
	sort.Strings(names)
	for _, name := range names {
		number, ok := segment.ParseName(name)
		if !ok || number < l.geo.Number(bad) {
			continue
		}
		from := l.geo.Start(number)
		if number == l.geo.Number(bad) {
			from = bad + 8
		}
		if found, err := l.attests(number, from, bad); err != nil || found {
			return found, err
		}
	}
	return false, nil
}

// attests is like attestedBehind, but searches only the segment with the given number, beginning at the position from.
func (l *FileLog) attests(number uint64, from, bad LSN) (bool, error) {
	f, err := l.segment(number)
	if err != nil {
		return false, err
	}
	buf := make([]byte, min(past.Chunk, l.geo.Size)+segment.HeaderSize)
	for at := (from + 7) &^ 7; at < l.geo.End(number); at += past.Chunk {
		n, err := past.ReadFull(f, buf, int64(at-l.geo.Start(number)))
		if err != nil {
			return false, err
		}
		for i := 0; i+segment.HeaderSize <= n; i += 8 {
			if !segment.MayBeHeader(buf[i:], at+uint64(i)) {
				continue
			}
			if h, err := l.geo.ParseHeader(buf[i:n], at+uint64(i)); err == nil && h.Durable > bad {
				return true, nil
			}
		}
		if n < len(buf) {
			return false, nil
		}
	}
	return false, nil
}
