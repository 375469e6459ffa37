package wal

import (
	"fmt"
	"regexp"
	"slices"
	"time"
)

// making matches the names of files that the log is still creating: segments, pages, and files made in a group's
// folder, see package vfs.
var making = regexp.MustCompile(`^([0-9]+-([0-9]+|renew|own|features|ended|sent)|([0-9]{8,}\.wal|shared|owner|features|ended|sent|expiry|moved\.json|[a-z]+\.lock))(\.new)?(\.[0-9]+-[0-9]+)?\.new$`)

// IsMaking reports whether a name in wal/ is one that the log gives to an unfinished file. Any other name that
// ends in ".new" belongs to the user, and stays.
func IsMaking(name string) bool { return making.MatchString(name) }

// leftAfter is the time for which an unfinished segment must be unchanged before the process that created it is
// considered dead.
const leftAfter = 10 * time.Minute

// dropLeft removes unfinished segments that killed processes have left, each up to the full size of a segment.
// Otherwise only a recovery would remove them. If the process was merely stopped, it finds its file missing, and
// continues without it.
func (l *FileLog) dropLeft() error {
	names, err := l.o.FS.ReadDir(l.o.walDir())
	if err != nil {
		return err
	}
	for _, name := range names {
		if !IsMaking(name) {
			continue
		}
		if info, err := l.o.FS.Stat(l.o.wal(name)); err != nil || l.o.Clock().Sub(info.Mtime) < leftAfter {
			continue
		}
		// The clock may be ahead: the file of a living process stays, whatever its age.
		var maker int
		if n, _ := fmt.Sscanf(name, "%d-", &maker); n == 1 && slices.Contains(l.Processes().IDs(), maker) {
			continue
		}
		l.o.Logger.Info("removing an unfinished segment", "name", name)
		if err := l.o.FS.Remove(l.o.wal(name)); err != nil {
			return err
		}
	}
	return nil
}
