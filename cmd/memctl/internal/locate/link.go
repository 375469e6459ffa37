package locate

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/varve-db/varve/internal/places"
)

// LeadsOut says where a link in a folder's entry leads if that is outside of the folder, "" if it
// stays inside or is none. A project that was cloned brings its links along, and one of them may name
// a store of yours.
func LeadsOut(folder, name string) string {
	path := filepath.Join(folder, name)
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) { // it may come
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
