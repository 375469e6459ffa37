package vfs

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// LockedBy is the process that has a lock file locked, as the system sees it; 0 when
// nobody has, or the system does not tell.
func LockedBy(name string) (pid int) { return holderOf("FLOCK", name) }

// leasedBy returns the process that has a lease on a file.
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
	// 8: FLOCK  ADVISORY  WRITE 5333 fe:00:10142682 0 EOF A waiting process has an arrow in front
	// of FLOCK; a process of another namespace is 0. Of a lease: 8: LEASE  BREAKING  READ 5333 fe:00:10142682 0 EOF
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
