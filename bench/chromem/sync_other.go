//go:build !linux

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// syncFiles makes everything that was written below a folder durable.
func syncFiles(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && runtime.GOOS == "windows" {
			return err
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if d.IsDir() {
			f, err = os.Open(path)
		}
		if err != nil {
			return err
		}
		defer f.Close()
		return f.Sync()
	})
}
