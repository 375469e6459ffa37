package cli

import (
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/locate"
	"github.com/varve-db/varve/internal/vfs"
)

// ReplaceFile writes a file that the user named with write, and renames it into place when it is
// complete: see vfs.ReplaceGiven. A file in the folder of a store is refused before anything is
// written: every output of memctl to a file goes through ReplaceFile.
func (a *App) ReplaceFile(name string, perm fs.FileMode, write func(io.Writer) error) error {
	if err := a.NotInStore(name); err != nil {
		return err
	}
	return vfs.ReplaceGiven(name, perm, write)
}

// NotInStore returns an error if an output file is in the folder of a store of this user, or of the
// store that the command uses, even if another user owns it.
func (a *App) NotInStore(name string) error {
	self, named := locate.Self(a.Getenv), a.Named()
	if named != "" {
		if real, err := filepath.EvalSymlinks(named); err == nil {
			named = real
		}
		named, _ = filepath.Abs(named)
	}
	above, err := locate.Above(name, func(dir string) bool { return (dir == named || self.Own(dir)) && IsStore(dir) })
	switch {
	case err != nil:
		return err
	case above != "":
		err = fmt.Errorf("%w: %s is inside of the store %s, whose files only the store writes: nothing was written",
			varve.ErrInvalid, name, above)
		return WithFix(err, "name a file outside of it")
	}
	return nil
}
