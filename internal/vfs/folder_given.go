package vfs

import (
	"io/fs"
	"os"
	"path/filepath"
)

// FolderGiven returns the folder to make or to fill if a user gave this name: if it is that of a link to a
// folder, such as a volume, that folder. The link itself would be replaced.
func FolderGiven(name string) string {
	if info, err := os.Lstat(name); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return name
	}
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return name
	}
	return real
}
