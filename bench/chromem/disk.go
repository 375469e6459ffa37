package main

import (
	"io/fs"
	"path/filepath"
)

// diskUse returns the total size of all files in a folder.
func diskUse(dir string) (bytes float64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			bytes += float64(info.Size())
		}
		return err
	})
	return bytes, err
}
