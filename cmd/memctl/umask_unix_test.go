//go:build linux || darwin

package main

import (
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// FAILURES 186: a umask that takes rights from the owner leaves no store that its owner cannot open: files
// and folders have the rights of their owner, whatever the umask is.
func TestUmask(t *testing.T) {
	t.Parallel()
	memctl, err := exec.LookPath("memctl")
	if err != nil {
		t.Fatal(err)
	}
	for _, mask := range []string{"0777", "0400", "0200", "0100", "0177", "0000"} {
		dir := t.TempDir()
		script := `umask ` + mask + ` && export XDG_STATE_HOME="$2/state" && "$1" init "$2/s" && "$1" put text --id a --store "$2/s" &&
			"$1" get a --store "$2/s" && "$1" backup "$2/b" --store "$2/s" && "$1" restore "$2/b" "$2/r" && "$1" verify --store "$2/r"`
		out, err := exec.Command("sh", "-c", script, "sh", memctl, dir).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "no damage found") {
			t.Errorf("umask %s: %v: %s", mask, err, out)
		}
		err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			want := fs.FileMode(0o600)
			if d.IsDir() {
				want = 0o700
			}
			if path != dir && info.Mode().Perm() != want {
				t.Errorf("umask %s: %s has mode %v", mask, path, info.Mode())
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}
