package remote

import (
	"fmt"
	"io/fs"
	"runtime"

	"github.com/varve-db/varve/errs"
)

// CheckMode returns an error, which matches errs.ErrPermission, if users other than its owner can access a file with a
// secret. On Windows it returns nil, because the mode of a file does not show this.
func CheckMode(file string, mode fs.FileMode) error {
	if runtime.GOOS == "windows" || mode.Perm()&0o077 == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s can be read by others (mode %v) -> chmod 600 %s", errs.ErrPermission, file, mode.Perm(),
		file)
}
