package remote

import (
	"fmt"
	"io/fs"
	"runtime"

	"github.com/varve-db/varve/errs"
)

// CheckMode returns an error if users other than the owner can access a file with a secret. The error matches
// errs.ErrPermission. On Windows CheckMode returns nil, because there the mode does not show who can access the file.
func CheckMode(file string, mode fs.FileMode) error {
	if runtime.GOOS == "windows" || mode.Perm()&0o077 == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s can be read by others (mode %v) -> chmod 600 %s", errs.ErrPermission, file, mode.Perm(),
		file)
}
