package wal

import (
	"fmt"

	"github.com/varve-db/varve/errs"
)

// noSpace says how much is missing for the log to go on: the next step that is
// written out ahead of the tail, and the reserve behind it.
func (l *FileLog) noSpace(err error) error {
	full := &errs.DiskFullError{Path: l.o.walDir(), Free: -1, Need: -1, Err: fmt.Errorf("%w (deletes still work; puts work again as soon as there is space)", err)}
	if v, verr := l.o.FS.Volume(l.o.Dir); verr == nil {
		full.Free, full.Inodes = v.Free, v.NoFile()
	}
	if l.geo.Size > 0 && l.shared.Shared != nil {
		full.Need = int64(l.step(l.shared.tail()) + l.reserve())
	}
	return full
}
