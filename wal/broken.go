package wal

import (
	"errors"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/wal/past"
)

// Whatever begins another log in the place of one that a reader may follow records why, in wal/ended, before
// the first segment of that log exists: see past.Log.Broken. In this package that is create; a repair does so
// before NewSegment, and a purge, after which a copy must begin again as well, when it is done.

// brokenByCreate records why a log is begun that is not the first one of the store. Nothing is recorded for a log
// that begins in segment 1 of a folder where neither a checkpoint nor a record names an earlier one.
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

// mendEnded replaces a damaged wal/ended, after which every copy begins again; open.lock is held, and no other
// process is attached. If that fails, copies stop, and the store works.
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
