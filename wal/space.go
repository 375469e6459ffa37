package wal

import (
	"fmt"

	"github.com/varve-db/varve/internal/vfs"
)

// noSpace adds to err how many bytes of disk space the log needs to continue: the next step of zeros that is
// written ahead of the tail, and the reserve after it.
func (l *FileLog) noSpace(err error) error {
	full := vfs.Full(l.o.FS, l.o.walDir(), fmt.Errorf("%w (deletes still work; puts work again as soon as there is space)",
		err))
	if l.geo.Size > 0 && l.shared.Mapped() {
		full.Need = int64(l.step(l.shared.Tail()) + l.reserve())
	}
	return full
}
