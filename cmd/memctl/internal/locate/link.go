package locate

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/varve-db/varve/internal/places"
)

// LeadsOut returns the target of the symbolic link name in a folder if the target is outside of the folder, or does
// not exist. It returns "" if the target is inside, or name is not a link. A cloned project brings its links along,
// and one of these links may lead to a store of the user.
func LeadsOut(folder, name string) string {
	path := filepath.Join(folder, name)
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) { // the target may be created later
		to, err := os.Readlink(path)
		if err != nil {
			return ""
		}
		return to
	}
	within, werr := filepath.EvalSymlinks(folder)
	if err != nil || werr != nil || places.Within(real, within) {
		return ""
	}
	return real
}
