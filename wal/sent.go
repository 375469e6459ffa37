package wal

import (
	"errors"
	"math"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/wal/past"
)

// A copy of the log in another place records the mark up to which it has the log: past.Log.SetSent. The
// segments after that mark are kept. A released segment is archived, even if no history is kept. The file in
// the archive stays although history_bytes or history_days would remove it, as long as the archive is not
// larger than history_bytes plus unsent_bytes (Options.Unsent). Beyond that size, and on a full disk, it is
// removed: a copy that no longer follows must not block the store. Then past.Log.Sent reports this, the copy
// must begin again, and nothing is kept for it.
//
// A damaged mark is treated as one before all kept segments. For a mark of a log that has ended nothing is
// kept.

// unsent returns the number of the first segment that may not be completely in the continuous copy of the log in
// another place. The segment in which the copy ends counts as incomplete. If there is no such copy, unsent returns a
// number above all segments.
func (l *FileLog) unsent() uint64 {
	s, ok, err := l.Past().Sent(l.Durable())
	switch {
	case !ok, errors.Is(err, past.ErrBegunAgain), errors.Is(err, errs.ErrNewerFormat), errors.Is(err, errs.ErrCopyBehind):
		return math.MaxUint64
	case err != nil:
		return 0
	}
	return l.geo.Number(s.Mark.LSN - 1)
}
