package vfs

import (
	"io/fs"
	"os"
	"path/filepath"
)

// FolderGiven returns the folder to create or to fill if a user has passed the path name. If name is a link to a folder
// (such as a volume), FolderGiven returns the target of the link, because an operation on name itself would replace the
// link.
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

// Dangles reports whether a path is a symbolic link whose target does not exist.
func Dangles(name string) bool {
	info, err := os.Lstat(name)
	return err == nil && info.Mode()&fs.ModeSymlink != 0 && FolderGiven(name) == name
}

// WithoutLinks returns the path of a folder without symbolic links, or the name itself if the folder cannot be found.
func WithoutLinks(name string) string {
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return name
	}
	return real
}
