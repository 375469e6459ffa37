package vfs

import (
	"os"
	"path/filepath"
	"testing"
)

// TestIdentify: Identify describes a file as Stat does, but for its time.
func TestIdentify(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "a", "b"), 0o700); err != nil {
		t.Fatal(err)
	}
	fsys, release, err := Hold(Below(OS(), root), root)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	for _, name := range []string{"f", "a/f", "a/b/f"} {
		name = filepath.Join(root, name)
		if err := os.WriteFile(name, []byte("text"), 0o640); err != nil {
			t.Fatal(err)
		}
		for at, fs := range map[string]FS{"OS": OS(), "held": fsys} {
			want, err := fs.Stat(name)
			got, ierr := Identify(fs, name)
			if want.Mtime = got.Mtime; err != nil || ierr != nil || got != want {
				t.Errorf("%s, %s: %+v, %v, want %+v, %v", at, name, got, ierr, want, err)
			}
			if _, err := Identify(fs, name+"x"); !os.IsNotExist(err) {
				t.Errorf("%s, %s: a missing file: %v", at, name, err)
			}
		}
	}
}
