//go:build unix

package servicecmd

import (
	"fmt"
	"os"
	"syscall"
)

// ownerOf returns the owner and the group of a folder, as numbers.
func ownerOf(dir string) (string, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return "", err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", nil
	}
	return fmt.Sprintf("%d:%d", st.Uid, st.Gid), nil
}
