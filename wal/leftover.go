package wal

import (
	"fmt"
	"regexp"
	"slices"
	"time"
)

// making are the names that the log gives to its files until they are whole: those of segments and
// pages, and of what is made in the folder of a group, see package vfs.
var making = regexp.MustCompile(`^([0-9]+-([0-9]+|renew|own|features|ended|sent)|([0-9]{8,}\.wal|shared|owner|features|ended|sent|expiry|moved\.json|[a-z]+\.lock))(\.new)?(\.[0-9]+-[0-9]+)?\.new$`)

// IsMaking reports whether a name in wal/ is one that the log gives to a file until the file is whole.
// Any other name that ends in ".new" is a user's, and stays.
func IsMaking(name string) bool { return making.MatchString(name) }

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
		if !IsMaking(name) {
			continue
		}
		if info, err := l.o.FS.Stat(l.o.wal(name)); err != nil || l.o.Clock().Sub(info.Mtime) < leftAfter {
			continue
		}
		// The clock may be ahead: what a living process makes stays, whatever its age.
		var maker int
		if n, _ := fmt.Sscanf(name, "%d-", &maker); n == 1 && slices.Contains(l.Processes().IDs(), maker) {
			continue
		}
		l.o.Logger.Info("removing a segment that a process began to make and did not finish", "name", name)
		if err := l.o.FS.Remove(l.o.wal(name)); err != nil {
			return err
		}
	}
	return nil
}
