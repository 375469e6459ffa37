//go:build unix

package dir_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/remote/dir"
)

// TestFolderOfAnotherUser: a folder that another user has created does not become a remote. Only root can show it.
func TestFolderOfAnotherUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Log("only root can make a folder of another user")
		return
	}
	folder := filepath.Join(t.TempDir(), "copy")
	if err := errors.Join(os.Mkdir(folder, 0o700), os.Lchown(folder, 65533, 65533)); err != nil {
		t.Fatal(err)
	}
	if _, err := dir.Create(t.Context(), folder, nil); !errors.Is(err, errs.ErrPermission) {
		t.Error(err)
	}
	if list, err := os.ReadDir(folder); len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
}
