package wal

import (
	"errors"
	"math"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/wal/past"
)

// A copy elsewhere that follows the log records up to where it has the log: past.Log.SetSent. What follows that
// mark is kept. A released segment is archived, even if no history is kept, and its copy in the archive stays
// although history_bytes or history_days would remove it, as long as the archive is not larger than
// history_bytes plus unsent_bytes (Options.Unsent). Beyond that bound, and on a full disk, it is removed: an
// absent copy must not block the store. Then past.Log.Sent reports this, the copy must begin again, and nothing
// is kept for it.
//
// A damaged mark counts as one before everything that is kept. A mark of a log that has ended keeps nothing.

// unsent returns the number of the first segment that may not be completely copied to the other machine. Without such
// a copy, it returns a number above all segments. The segment that contains the recorded position counts as unsent.
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
