package wal

import (
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

// readGuess is the number of bytes that is read first for a frame. Most frames are smaller.
const readGuess = 4096

// ReadAt returns the entry at pos, which must be the LSN of an entry. If the log no longer has this position, the
// error matches errs.ErrTruncated.
func (l *FileLog) ReadAt(ctx context.Context, pos LSN) (Entry, error) {
	e, err := l.readAt(pos)
	if err == nil {
		return e, nil
	}
	// The file was recycled or renamed, or it is damaged: the spilled mark decides.
	if past.IsNoFrame(err) {
		if l.left(pos) {
			l.forgetFiles(l.geo.Number(pos) + 1)
			return Entry{}, &errs.TruncatedError{Oldest: l.shared.Spilled()}
		}
		// A segment that was archived and not recycled yet has a second copy.
		if l.archived(l.geo.Number(pos)) {
			if e, err := l.Past().At(ctx, pos, l.Durable()); err == nil {
				return e, nil
			}
		}
		return Entry{}, l.corruption(&past.NoFrameError{At: pos, Here: err})
	}
	return Entry{}, err
}

func (l *FileLog) readAt(pos LSN) (Entry, error) {
	number := l.geo.Number(pos)
	f, err := l.segment(number)
	if err != nil {
		return Entry{}, err
	}
	b := make([]byte, min(readGuess, l.geo.End(number)-pos))
	n, err := past.ReadFull(f, b, l.geo.Offset(pos))
	if err != nil {
		return Entry{}, err
	}
	h, err := l.geo.ParseHeader(b[:n], pos)
	if err != nil {
		return Entry{}, err
	}
	if size := segment.HeaderSize + int(h.Length); size > n {
		whole := make([]byte, size)
		copy(whole, b[:n])
		if m, err := past.ReadFull(f, whole[n:], l.geo.Offset(pos)+int64(n)); err != nil || n+m < size {
			return Entry{}, errors.Join(segment.ErrPayload, err)
		}
		b = whole
	}
	payload := b[segment.HeaderSize : segment.HeaderSize+int(h.Length)]
	if _, _, err := h.Check(payload); err != nil {
		return Entry{}, err
	}
	e := past.EntryIn(&h, payload)
	e.Key = strings.Clone(e.Key)
	return e, nil
}

// Scan yields the durable entries in the segments of the log, in order. It yields every version of a key, and reads
// only the segments, not the archive. from must be a position at which a frame begins, or at which the frames of a
// segment end.
func (l *FileLog) Scan(ctx context.Context, from LSN) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		to := l.Durable()
		w := past.NewWalker(l.geo, l.source, Mark{LSN: from})
		for w.At.LSN < to {
			if err := ctx.Err(); err != nil {
				yield(Entry{}, err)
				return
			}
			h, payload, err := w.Next(to)
			if err != nil {
				var none *past.NoFrameError
				if errors.As(err, &none) {
					err = l.missing(none)
				}
				yield(Entry{}, err)
				return
			}
			if h.Kind < past.KindUser {
				continue
			}
			e := past.EntryOf(&h, payload)
			if !yield(e, nil) {
				return
			}
		}
	}
}
