package cli

import (
	"io"
	"io/fs"

	"github.com/varve-db/varve/internal/vfs"
)

// ReplaceFile lets write fill a file that takes its name when it is complete: see vfs.ReplaceGiven.
func ReplaceFile(name string, perm fs.FileMode, write func(io.Writer) error) error {
	return vfs.ReplaceGiven(name, perm, write)
}
