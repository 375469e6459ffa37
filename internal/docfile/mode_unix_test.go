//go:build linux || darwin

package docfile

import (
	"fmt"
	"io/fs"
	"os"
	"testing"

	"github.com/varve-db/varve/internal/vfs"
)

// TestModeIsKept verifies that a file which replaces a file of the user has its permission bits, and that other files
// have not.
func TestModeIsKept(t *testing.T) {
	b := newBed(t, nil)
	b.folder = b.l.FolderOf("memories", FolderOptions{Tree: true, KeepMode: true})
	modes := []fs.FileMode{0o600, 0o644, 0o400, 0o640, 0o755, 0o200}
	name := func(i int) string { return fmt.Sprintf("x/%d.md", i) }
	const many = 70 // changes of a round that is synced as a whole
	round := func(n, from, to int) {
		t.Helper()
		var list []Change
		for i := range n {
			list = append(list, b.change(name(i), from, to))
		}
		b.put(list...)
	}
	round(many, 0, 1)
	for i, mode := range modes {
		if err := os.Chmod(b.folder.Path(name(i)), mode); err != nil {
			t.Fatal(err)
		}
	}
	check := func() {
		t.Helper()
		for i := range many {
			want := fs.FileMode(0o600)
			if i < len(modes) && modes[i]&0o400 != 0 {
				want = modes[i] | 0o600
			}
			if info, err := b.folder.Stat(name(i)); err != nil || info.Mode.Perm() != want {
				t.Errorf("%s: %v, %v, want %v", name(i), info.Mode, err, want)
			}
		}
	}
	round(many, 1, 2)
	check()
	round(len(modes)+2, 2, 3)
	check()
	b.put(b.change("x/new.md", 0, 1))
	if info, err := b.folder.Stat("x/new.md"); err != nil || info.Mode.Perm() != 0o600 {
		t.Errorf("a new file: %v, %v", info.Mode, err)
	}
}

// TestModeOver verifies which permission bits a file gets in a shared store, and where its group is another one.
func TestModeOver(t *testing.T) {
	for _, c := range []struct {
		old, made fs.FileMode
		gid       uint32
		list      bool // the old file has an access control list
		want      fs.FileMode
	}{
		{0o644, 0o600, 1, false, 0o644},
		{0o600, 0o640, 1, false, 0o640}, // the rule of the volume has added the right
		{0o600, 0o660, 1, false, 0o660},
		{0o644, 0o660, 1, false, 0o664},
		{0o640, 0o600, 2, false, 0o600},
		{0o664, 0o600, 2, false, 0o644},
		{0o660, 0o660, 2, false, 0o660},
		{0o044, 0o600, 1, false, 0o600},
		{fs.ModeSetuid | 0o755, 0o600, 1, false, 0o755},
		{0o444, 0o600, 1, false, 0o644}, // a purge must be able to overwrite it
		{0o660, 0o600, 1, true, 0o600},  // the bits of the group are the mask of the list
		{0o664, 0o600, 1, true, 0o644},
	} {
		old, made := vfs.Info{Mode: c.old, GID: 1}, vfs.Info{Mode: c.made, GID: c.gid}
		if got := modeOver(old, made, 0o600, c.list); got != c.want {
			t.Errorf("%v over %v: %v, want %v", c.made, c.old, got, c.want)
		}
	}
}
