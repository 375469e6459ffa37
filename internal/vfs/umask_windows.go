package vfs

import (
	"io/fs"
	"os"
)

func mkdirOS(name string, perm fs.FileMode) error { return os.Mkdir(name, perm) }
