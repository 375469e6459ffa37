package scratch

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
)

// MinFree is the minimum free space in bytes that a file system in memory must have to be used.
const MinFree = 2 << 30

// before is the folder for temporary files that was in use before Use was called.
var before string

// Use creates a folder for the temporary files of this process in memory, makes TMPDIR its path, and returns a
// function that removes it. If no such folder can be created, TMPDIR is unchanged. Use also makes garbage
// collections rare, because tests open and close thousands of small stores.
func Use() (remove func()) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
		debug.SetMemoryLimit(1 << 30) // from there on as often as usual
	}
	if os.Getenv("TMPDIR") != "" || os.Getenv("VARVE_TEST_DISK") == "1" {
		return func() {}
	}
	was := os.TempDir()
	dir, remove, ok := inMemory()
	if !ok {
		return func() {}
	}
	if err := os.Setenv("TMPDIR", dir); err != nil {
		remove()
		return func() {}
	}
	before = was
	return remove
}

// Main is the TestMain of a package that needs only the folder of Use.
func Main(m *testing.M) { os.Exit(Around(m).Run()) }

// Tests runs the tests of a package in the folder of Use.
type Tests struct{ tests interface{ Run() int } }

// Around returns Tests for a TestMain that passes its tests to goleak or testscript.
func Around(tests interface{ Run() int }) Tests { return Tests{tests} }

// Run creates the folder, runs the tests, and removes the folder.
func (t Tests) Run() int {
	defer Use()()
	return t.tests.Run()
}

// Disk returns a new folder for the test on a disk, not in memory. If no folder on a disk can be created, it returns
// t.TempDir().
func Disk(t testing.TB) string {
	t.Helper()
	for _, parent := range []string{before, os.TempDir(), "/var/tmp"} {
		if parent == "" || isMemory(parent) {
			continue
		}
		dir, err := os.MkdirTemp(parent, filepath.Base(t.Name())+"-")
		if err != nil {
			continue
		}
		t.Cleanup(func() {
			if err := os.RemoveAll(dir); err != nil {
				t.Error(err)
			}
		})
		return dir
	}
	return t.TempDir()
}
