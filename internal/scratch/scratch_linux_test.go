package scratch

import (
	"os"
	"path/filepath"
	"testing"
)

// TestFolders verifies that a folder is removed by its process, or by the next process if its own was killed, and that
// a folder in use stays.
func TestFolders(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "all")
	one, remove, ok := createIn(parent)
	if !ok {
		t.Fatal("no folder")
	}
	killed := filepath.Join(parent, "killed")
	if err := os.MkdirAll(filepath.Join(killed, "s", "memories"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(killed, locked), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	two, removeTwo, ok := createIn(parent)
	if !ok || two == one {
		t.Fatal(two, ok)
	}
	there := func(dir string) bool {
		_, err := os.Stat(dir)
		return err == nil
	}
	if !there(one) || there(killed) {
		t.Errorf("in use: %t, left behind: %t", there(one), there(killed))
	}
	remove()
	removeTwo()
	if there(one) || there(two) {
		t.Error("not removed")
	}
}

// TestForeignFolder verifies that a folder that other users can write to, or that is a link, is not used.
func TestForeignFolder(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "all")
	if err := os.Mkdir(parent, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(parent, 0o777); err != nil {
		t.Fatal(err)
	}
	link := parent + ".link"
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{parent, link} {
		if dir, _, ok := createIn(name); ok {
			t.Error(dir)
		}
	}
}

// TestUse verifies that Use keeps a TMPDIR that the user has set, and obeys VARVE_TEST_DISK=1.
func TestUse(t *testing.T) {
	was := t.TempDir()
	t.Setenv("TMPDIR", was)
	Use()()
	if got := os.Getenv("TMPDIR"); got != was {
		t.Error(got)
	}
	t.Setenv("TMPDIR", "")
	t.Setenv("VARVE_TEST_DISK", "1")
	Use()()
	if got := os.Getenv("TMPDIR"); got != "" {
		t.Error(got)
	}
}
