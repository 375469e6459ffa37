package wal

import (
	"context"
	"errors"
	"sort"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/segment"
)

// replay follows and applies the frames to the end of the log and decides what
// an end is: below what was durable it is damage.
func (l *FileLog) replay(ctx context.Context, attested LSN, chain Mark) (Mark, *errs.CorruptionError, error) {
	s := &l.state
	end := s.w.at // behind the last whole batch
	passed := s.w.at.LSN >= chain.LSN
	wrong := s.w.at.LSN == chain.LSN && chain.Sum != 0 && s.w.at.Sum != chain.Sum
	var none *errNoFrame
	for none == nil && !wrong {
		for n := 0; n == 0 || s.w.buffered(); n++ {
			h, payload, err := s.w.next(1 << 63)
			if errors.As(err, &none) {
				break
			}
			if err != nil {
				return end, nil, err
			}
			if !passed && h.End() >= chain.LSN {
				passed = true
				if wrong = chain.Sum != 0 && (h.End() != chain.LSN || h.Sum != chain.Sum); wrong {
					none = &errNoFrame{at: h.LSN, here: errors.New("not the frame that the checkpoint attests here")}
					break
				}
			}
			l.push(&h, payload)
			l.report.Bytes += int64(h.Size())
			if h.Kind >= kindUser {
				l.report.Replayed++
			}
			if !h.More() {
				end = s.w.at
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
		none = &errNoFrame{at: s.w.at.LSN, here: errors.New("the checkpoint's marks contradict each other")}
	}
	// What is left is the beginning of a batch without its end.
	s.drop(len(s.ahead))
	if s.lastEntry >= end.LSN {
		s.lastEntry = end.LSN - 1 // there may be one anywhere before
	}
	s.w = walker{geo: l.geo, open: l.segment, at: end, linked: true}
	s.forgetPending()
	behind := wrong || end.LSN < attested
	if _, err := l.segment(l.geo.Number(end.LSN - 1)); errors.Is(err, errNoSegment) {
		behind = true // the checkpoint's marks lie where there is no log
	} else if err != nil {
		return end, nil, err
	}
	// Within one boot the page tells how far anybody has written. What was appended
	// there behind a bad place would have moved the tail first.
	if !behind && (l.was.tail == 0 || end.LSN < l.was.tail) {
		var err error
		if behind, err = l.attestedBehind(none.at); err != nil {
			return end, nil, err // not read is not torn
		}
	}
	if behind {
		c := l.corruption(none)
		l.o.Logger.Error("the log is damaged", "at", none.at, "err", none)
		l.o.Event(Event{Kind: EventCorruption, Path: c.Path, LSN: none.at, Err: c})
		return end, c, nil
	}
	l.report.TornTail = nil
	if !errors.Is(none.here, segment.ErrEnd) || none.at != end.LSN {
		l.report.TornTail = &TornTail{At: end.LSN, Err: none.here}
	}
	return end, nil, nil
}

// attestedBehind looks for a frame behind a bad place whose writer knew that
// place to be durable: then it is damage, not the torn end. All that is behind
// it is searched, over holes as well; an error is not an answer.
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

// attests searches one segment from a position on.
func (l *FileLog) attests(number uint64, from, bad LSN) (bool, error) {
	f, err := l.segment(number)
	if err != nil {
		return false, err
	}
	buf := make([]byte, min(walkChunk, l.geo.Size)+segment.HeaderSize)
	for at := (from + 7) &^ 7; at < l.geo.End(number); at += walkChunk {
		n, err := readFull(f, buf, int64(at-l.geo.Start(number)))
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
