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

// ReplaceFile creates or replaces the file name, with the content that write writes. The new file gets its name only
// when it is complete; see vfs.ReplaceGiven. If the file is in the folder of a store, ReplaceFile returns an error
// before anything is written. All output of memctl to files goes through ReplaceFile.
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
		err = fmt.Errorf("%w: %s is inside the store %s, and only the store may write files there: nothing was written",
			varve.ErrInvalid, name, above)
		return WithFix(err, "give a path outside the store")
	}
	return nil
}
