package varve

import (
	"fmt"
	"os"
	"syscall"
	"testing"
)

// mountSmall mounts a disk of its own; false where that is not allowed.
func mountSmall(t *testing.T, bytes int64) (dir string, ok bool) {
	t.Helper()
	if os.Getuid() != 0 {
		return "", false
	}
	dir = t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", bytes)); err != nil {
		t.Logf("no tmpfs (%v): on the simulated disk instead; sudo go test mounts one", err)
		return "", false
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir, true
}

func remount(t *testing.T, dir string, readOnly bool) {
	t.Helper()
	flags := uintptr(syscall.MS_REMOUNT)
	if readOnly {
		flags |= syscall.MS_RDONLY
	}
	if err := syscall.Mount("", dir, "", flags, ""); err != nil {
		t.Fatal(err)
	}
}
