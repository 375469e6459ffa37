package vfs

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// LockedBy returns the process that holds the lock on a file, according to the system; 0 if no process holds it, or if
// the process is unknown.
func LockedBy(name string) (pid int) { return holderOf("FLOCK", name) }

// leasedBy returns the process that has a lease on a file; 0 if no process has one, or if the process is unknown.
func leasedBy(name string) (pid int) { return holderOf("LEASE", name) }

func holderOf(kind, name string) (pid int) {
	var st unix.Stat_t
	if err := retry(func() error { return unix.Stat(name, &st) }); err != nil {
		return 0
	}
	file := fmt.Appendf(nil, "%02x:%02x:%d", unix.Major(uint64(st.Dev)), unix.Minor(uint64(st.Dev)), st.Ino)
	list, err := os.ReadFile("/proc/locks")
	if err != nil {
		return 0
	}
	// A line is: 8: FLOCK  ADVISORY  WRITE 5333 fe:00:10142682 0 EOF For a waiting process an arrow precedes FLOCK; a
	// process of another namespace has the number 0. A lease is: 8: LEASE  BREAKING  READ 5333 fe:00:10142682 0 EOF
	for line := range bytes.Lines(list) {
		f := bytes.Fields(line)
		if len(f) < 6 || string(f[1]) != kind || !bytes.Equal(f[5], file) {
			continue
		}
		if pid, err = strconv.Atoi(string(f[4])); err == nil && pid > 0 {
			return pid
		}
	}
	return 0
}
