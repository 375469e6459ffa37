package proofs

import (
	"os"
	"path/filepath"
	"testing"
)

// SharedData returns the path of a real store, or of a real file of another system. It skips the test if the file is
// not found, because these files are not part of the project; see FindSharedData.
func SharedData(t testing.TB, name string) string {
	t.Helper()
	path := FindSharedData(name)
	if path == "" {
		t.Skipf("the shared data %s was not found: VARVE_SHARED does not name its folder, and no folder shared/ is "+
			"beside the project", name)
	}
	return path
}

// FindSharedData returns the absolute path of data/name in the folder that VARVE_SHARED names, otherwise in a folder
// shared/ beside the working directory or beside one of its parents. It returns "" if the file is not found.
func FindSharedData(name string) string {
	dir := os.Getenv("VARVE_SHARED")
	if dir != "" {
		return existing(dir, name)
	}
	dir, err := os.Getwd()
	for err == nil && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		if path := existing(filepath.Join(dir, "shared"), name); path != "" {
			return path
		}
	}
	return ""
}

func existing(dir, name string) string {
	path, err := filepath.Abs(filepath.Join(dir, "data", name))
	if err != nil {
		return ""
	}
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}
