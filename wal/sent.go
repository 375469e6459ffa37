package wal

import (
	"errors"
	"math"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/wal/past"
)

// A copy elsewhere that follows the log records up to where it has it: past.Log.SetSent. What is behind that mark
// is kept: a released segment is archived, also where nothing is kept of the history, and its copy in the archive
// stays where history_bytes or history_days would remove it, as long as the archive is not larger than
// history_bytes and unsent_bytes together (Options.Unsent). Past that bound, and on a full disk, it goes: a copy
// that is away holds nothing up. Then past.Log.Sent says so, the copy must begin again, and nothing is kept for it.
//
// A damaged mark counts as one before everything that is kept. A mark of a log that has ended holds nothing.

// unsent returns the number of the first segment of which a copy elsewhere may lack something, beyond all numbers
// where no copy follows this log. The segment in which the mark is counts as unsent.
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
