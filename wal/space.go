package wal

import (
	"fmt"

	"github.com/varve-db/varve/internal/vfs"
)

// noSpace adds to err the number of bytes of disk space that the log needs to continue: for the next step of zeros
// after the tail, and for the reserve.
func (l *FileLog) noSpace(err error) error {
	full := vfs.Full(l.o.FS, l.o.walDir(),
		fmt.Errorf("%w (deletes still work; writes work again as soon as there is space)",
			err))
	if l.geo.Size > 0 && l.shared.Mapped() {
		full.Need = int64(l.step(l.shared.Tail()) + l.reserve())
	}
	return full
}
