//go:build unix

package main

import (
	"io/fs"
	"path/filepath"
	"syscall"
)

// onDisk returns the disk space in bytes that the blocks of the files in a folder occupy.
func onDisk(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return nil
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			n += st.Blocks * 512
		}
		return nil
	})
	return n
}
