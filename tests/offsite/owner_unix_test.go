//go:build unix

package offsite

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/varve-db/varve"
)

// TestCloneIntoAFolderOfOthers: an empty folder that another user has created, such that its group may read what is
// created in it, is filled with no clone. Only root can show it.
func TestCloneIntoAFolderOfOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("only root can make a folder of another user")
		return
	}
	x := newOutsider(t)
	ctx := t.Context()
	x.put("a", "a secret")
	x.check(x.st.Admin().Offsite().Add(ctx, x.remote, x.url))
	for _, fork := range []bool{false, true} {
		to := filepath.Join(x.dir, "theirs")
		x.check(os.Mkdir(to, 0o700))
		x.check(errors.Join(os.Lchown(to, 65533, 65533), syscall.Chmod(to, 0o2777)))
		_, err := varve.Clone(ctx, x.remote, to, &varve.CloneOptions{Fork: fork, Options: x.o})
		if !errors.Is(err, varve.ErrPermission) {
			t.Errorf("fork %v: %v", fork, err)
		}
		if list, err := os.ReadDir(to); len(list) != 0 {
			t.Errorf("fork %v: %v, %v", fork, list, err)
		}
		x.check(os.RemoveAll(to))
	}
}

// TestKeysForOthers: nothing is sent to a sealed copy while other users can read the key with which this machine signs.
func TestKeysForOthers(t *testing.T) {
	x, ctx := newOutsider(t), t.Context()
	x.seals()
	x.put("a", "one")
	_, err := x.st.Admin().Offsite().AddSealed(ctx, x.remote, x.url, newIdentities(t, 2).recipients())
	x.check(err)
	names, err := filepath.Glob(filepath.Join(x.o.StateDir, "copies", "*.keys.json"))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	for mode, refused := range map[os.FileMode]bool{0o644: true, 0o660: true, 0o600: false, 0o400: false} {
		x.check(os.Chmod(names[0], mode))
		err := x.st.Admin().Offsite().Send(ctx, x.remote)
		if refused != errors.Is(err, varve.ErrPermission) || !refused && err != nil {
			t.Errorf("mode %04o: %v", mode, err)
		}
	}
}
