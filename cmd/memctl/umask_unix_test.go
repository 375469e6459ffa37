//go:build linux || darwin

package main

import (
	"errors"
	"io/fs"
	"os"
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
		top := t.TempDir()
		dir := filepath.Join(top, "dir")
		const editor = "#!/bin/sh\nstat -c %a \"$1\" \"$(dirname \"$1\")\" >&2 || stat -f %Lp \"$1\" \"$(dirname \"$1\")\" >&2\nsed s/text/new/ \"$1\" >\"$1.new\"; cat \"$1.new\" >\"$1\"\n"
		if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(top, "editor"), []byte(editor), 0o700)); err != nil {
			t.Fatal(err)
		}
		script := `umask ` + mask + ` && export XDG_STATE_HOME="$2/state" && "$1" init "$2/s" && "$1" put text --id a --store "$2/s" &&
			EDITOR="$2/../editor" TMPDIR="$2/.." "$1" edit a --store "$2/s" && "$1" get a --store "$2/s" && "$1" backup "$2/b" --store "$2/s" && "$1" restore "$2/b" "$2/r" && "$1" verify --store "$2/r"`
		out, err := exec.Command("sh", "-c", script, "sh", memctl, dir).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "no damage found") || !strings.Contains(string(out), "600\n700\n") {
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
