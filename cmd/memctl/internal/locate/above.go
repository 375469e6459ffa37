package locate

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Above returns the nearest folder above path for which match returns true, or "" if no such folder exists. Above
// first resolves the symbolic links in the part of path that exists.
func Above(path string, match func(dir string) bool) (string, error) {
	at, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("finding the path of %s: %w", path, err)
	}
	for dir := at; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			at = real + strings.TrimPrefix(at, dir)
			break
		}
	}
	for dir := at; dir != filepath.Dir(dir); {
		if dir = filepath.Dir(dir); match(dir) {
			return dir, nil
		}
	}
	return "", nil
}
