package vfs

import (
	"io/fs"
	"os"
)

// MkdirTemp calls os.MkdirTemp: Windows has no umask.
func MkdirTemp(dir, pattern string) (string, error) { return os.MkdirTemp(dir, pattern) }

func mkdirOS(name string, perm fs.FileMode) error { return os.Mkdir(name, perm) }
