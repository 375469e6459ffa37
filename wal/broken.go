package wal

import (
	"errors"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/wal/past"
)

// Every operation that replaces a log that a reader may follow records the reason in wal/ended, before the
// first segment of the new log exists: see past.Log.Broken. In this package that operation is create. A repair
// records its reason before NewSegment. A purge, after which a copy must begin again as well, records its
// reason when it is complete.

// brokenByCreate records in wal/ended why a new log replaces an earlier log of the store: the store was restored from
// a backup (restored is true), or the earlier log no longer exists. number is the number of the segment in which the
// new log begins. missing tells whether the checkpoint names an earlier log that no longer exists. brokenByCreate
// records nothing if the store had no earlier log: the new log begins in segment 1, and neither the checkpoint nor
// wal/ended names an earlier one.
func (l *FileLog) brokenByCreate(number uint64, restored, missing bool) error {
	reason := past.FilesLost
	switch {
	case restored:
		reason = past.Restored
	case number == 1 && !missing && !l.hasEnded:
		return nil
	}
	return l.broken(reason, l.geo.Start(number))
}

func (l *FileLog) broken(reason past.Reason, next LSN) error {
	return l.Past().Broken(reason, next, l.o.Clock(), l.o.FileMode)
}

// mendEnded replaces wal/ended if it is damaged. After that, every continuous copy of the log in another place must
// begin again. The caller holds open.lock, and no other process is attached. A failure of mendEnded is only logged:
// then such copies stop, but the store works.
func (l *FileLog) mendEnded(attested LSN) {
	if !l.hasEnded {
		return
	}
	_, err := l.Past().Endings()
	if !errors.Is(err, errs.ErrCorrupt) {
		return
	}
	l.o.Logger.Warn("wal/ended is damaged and is replaced; continuous copies of the log must begin again", "err", err)
	if err := l.broken(past.RecordLost, attested); err != nil {
		l.o.Logger.Warn("wal/ended could not be replaced", "err", err)
	}
}
