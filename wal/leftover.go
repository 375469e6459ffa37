package wal

import (
	"fmt"
	"regexp"
	"slices"
	"time"
)

// making matches the names that the log gives to unfinished files: to segments, to small files such as the shared page,
// and to files that are made in a subfolder so that they get the right group (see package vfs).
var making = regexp.MustCompile(`^([0-9]+-([0-9]+|renew|own|features|ended|sent|restoring)|([0-9]{8,}\.wal|shared|owner|features|ended|sent|expiry|moved\.json|[a-z]+\.lock))(\.new)?(\.[0-9]+-[0-9]+)?\.new$`)

// IsMaking reports whether the log gives this name to an unfinished file in wal/. Any other file whose name ends in
// ".new" belongs to the user and is not removed.
func IsMaking(name string) bool { return making.MatchString(name) }

// leftAfter is the age from which an unfinished segment counts as left by a dead process.
const leftAfter = 10 * time.Minute

// dropLeft removes unfinished segments that killed processes have left and that are older than leftAfter. An
// unfinished segment may be as large as a segment, and without dropLeft only a recovery would remove it. If its
// process was not killed but only stopped, the process does not find its file when it continues, and works without the
// file.
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
