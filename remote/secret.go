package remote

import (
	"fmt"
	"io/fs"
	"runtime"

	"github.com/varve-db/varve/errs"
)

// CheckMode returns an error, which matches errs.ErrPermission, if a file with a secret can be read by other users than
// its owner. On Windows the mode of a file does not tell.
func CheckMode(file string, mode fs.FileMode) error {
	if runtime.GOOS == "windows" || mode.Perm()&0o077 == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s can be read by others (mode %v) -> chmod 600 %s", errs.ErrPermission, file, mode.Perm(),
		file)
}
