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

// brokenByCreate records in wal/ended why a new log replaces an earlier log of the store: because the store
// was restored from a backup, or because the earlier log is gone. It records nothing for a log that begins in
// segment 1 of a folder where neither a checkpoint nor wal/ended names an earlier log.
func (l *FileLog) brokenByCreate(number uint64, restored, gone bool) error {
	reason := past.FilesLost
	switch {
	case restored:
		reason = past.Restored
	case number == 1 && !gone && !l.hasEnded:
		return nil
	}
	return l.broken(reason, l.geo.Start(number))
}

func (l *FileLog) broken(reason past.Reason, next LSN) error {
	return l.Past().Broken(reason, next, l.o.Clock(), l.o.FileMode)
}

// mendEnded replaces a damaged wal/ended. After that, every continuous copy of the log in another place must
// begin again. The caller holds open.lock, and no other process is attached. If mendEnded fails, only these
// copies stop; the store works.
func (l *FileLog) mendEnded(attested LSN) {
	if !l.hasEnded {
		return
	}
	_, err := l.Past().Endings()
	if !errors.Is(err, errs.ErrCorrupt) {
		return
	}
	l.o.Logger.Warn("the record of ended logs is damaged and is replaced; a copy of the log must begin again", "err", err)
	if err := l.broken(past.RecordLost, attested); err != nil {
		l.o.Logger.Warn("replacing the record of ended logs", "err", err)
	}
}
