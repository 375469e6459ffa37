package vfs

import (
	"io/fs"
	"os"
	"path/filepath"
)

// FolderGiven returns the folder to create or fill for a name that a user has passed. If the name is a link to a folder
// (such as a volume), that is its target, because the link itself would be replaced.
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

// Dangles reports whether a name is a symbolic link that leads nowhere.
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
