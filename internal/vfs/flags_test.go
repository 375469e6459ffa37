package vfs_test

import (
	"path/filepath"
	"testing"

	"github.com/varve-db/varve/internal/vfs"
)

// A relative name is resolved beyond the current folder.
func TestMountPointRelative(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if got, want := vfs.MountPoint(vfs.OS(), "."), vfs.MountPoint(vfs.OS(), dir); got != want || !filepath.IsAbs(got) {
		t.Errorf("%s, want %s", got, want)
	}
}
