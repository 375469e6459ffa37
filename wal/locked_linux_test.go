package wal

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
)

// If a process is stopped between taking a lock and recording it, the system names it as the holder.
func TestHolderThatDidNotSay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := open(t, dir, func(o *Options) { o.LockWait = 20 * time.Millisecond })
	k, err := vfs.OS().OpenLock(filepath.Join(dir, "wal", "append.lock"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := k.TryLock(vfs.ModeExclusive); !ok || err != nil {
		t.Fatal(ok, err)
	}
	_, err = l.Append(context.Background(), put("k", "v"))
	var le *errs.LockError
	if !errors.As(err, &le) || le.Holder.PID != os.Getpid() || le.Holder.Command == "" || !le.Holder.Since.IsZero() {
		t.Errorf("%+v, %v", le, err)
	}
	if err := errors.Join(k.Close(), l.Close()); err != nil {
		t.Error(err)
	}
}
