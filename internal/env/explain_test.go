package env

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
)

// TestExplainsRename verifies that the message about a refused rename, which has two names, is about the new one.
func TestExplainsRename(t *testing.T) {
	dir := t.TempDir()
	e := &Env{Dir: dir, FS: vfs.OS()}
	was, is := filepath.Join(dir, "tmp", "1"), filepath.Join(dir, "memories", "a.json")
	for _, path := range []string{was, is} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	err := e.Explain(&os.LinkError{Op: "rename", Old: was, New: is, Err: syscall.EPERM})
	p, ok := errors.AsType[*errs.PermissionError](err)
	if !ok || p.Path != is {
		t.Fatalf("%+v %v", p, err)
	}
}
