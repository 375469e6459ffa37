package wal

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// leftAfter is how long a segment in the making must not have grown to be taken
// for one whose maker died.
const leftAfter = 10 * time.Minute

// dropLeft removes what makers of segments left that were killed: up to a whole
// segment each, which only a recovery would remove otherwise. One that was only
// stopped finds no file to give its name to, and goes on without.
func (l *FileLog) dropLeft() error {
	names, err := l.o.FS.ReadDir(l.o.walDir())
	if err != nil {
		return err
	}
	for _, name := range names {
		if !strings.HasSuffix(name, ".new") {
			continue
		}
		if info, err := l.o.FS.Stat(l.o.wal(name)); err != nil || l.o.Clock().Sub(info.Mtime) < leftAfter {
			continue
		}
		// The clock may be ahead: what a living process makes stays, whatever its age.
		var maker int
		if n, _ := fmt.Sscanf(name, "%d-", &maker); n == 1 && slices.Contains(l.Processes(), maker) {
			continue
		}
		l.o.Logger.Info("removing a segment that a process began to make and did not finish", "name", name)
		if err := l.o.FS.Remove(l.o.wal(name)); err != nil {
			return err
		}
	}
	return nil
}
