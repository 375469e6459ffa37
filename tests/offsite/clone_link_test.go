package offsite

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/varve-db/varve"
)

// TestCloneIntoALink: a link that leads nowhere is not replaced by a clone, a restored store, or a backup.
func TestCloneIntoALink(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege")
	}
	x, ctx := newOutsider(t), t.Context()
	x.put("a", "one")
	x.check(x.st.Admin().Offsite().Add(ctx, x.remote, x.url))
	link := filepath.Join(x.dir, "link")
	x.check(os.Symlink(filepath.Join(x.dir, "nowhere"), link))
	for _, fork := range []bool{false, true} {
		_, err := varve.Clone(ctx, x.remote, link, &varve.CloneOptions{Fork: fork, Options: x.o})
		if !errors.Is(err, varve.ErrInvalid) {
			t.Errorf("fork %v: %v", fork, err)
		}
		if to, err := os.Readlink(link); err != nil || to != filepath.Join(x.dir, "nowhere") {
			t.Errorf("fork %v: the link: %q, %v", fork, to, err)
		}
	}
	if _, err := varve.Restore(ctx, x.backup(), link, nil); !errors.Is(err, varve.ErrInvalid) {
		t.Errorf("restore: %v", err)
	}
	for _, packed := range []bool{false, true} {
		o := varve.BackupOptions{Packed: packed}
		if _, err := x.st.Backup(ctx, link, o); !errors.Is(err, varve.ErrInvalid) {
			t.Errorf("backup, packed %v: %v", packed, err)
		}
	}
	if _, err := os.Readlink(link); err != nil {
		t.Error(err)
	}
}

// backup makes a backup of the store.
func (x *outsider) backup() string {
	x.t.Helper()
	to := filepath.Join(x.dir, "backup")
	_, err := x.st.Backup(x.t.Context(), to, varve.BackupOptions{})
	x.check(err)
	return to
}
