package wal

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/fault"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// A log begins in a segment that was prepared for it, even on a full disk.
func TestCreateInPrepared(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "wal"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(segPath(dir, 1), make([]byte, 8192), 0o600); err != nil {
		t.Fatal(err)
	}
	l, _ := open(t, dir, func(o *Options) {
		o.Inline = true
		o.FS = fault.New(vfs.OS(), func(op *fault.Op) error {
			if strings.HasSuffix(op.Path, ".new") && op.Kind == wrap.Write {
				return syscall.ENOSPC
			}
			return nil
		})
	})
	if !l.Report().Created {
		t.Error(l.Report())
	}
	l.Close()
	l, _ = open(t, dir, func(*Options) {})
	defer l.Close()
	if r := l.Report(); r.Created || !r.Clean {
		t.Error(r)
	}
}

// A log whose first segment could not be made durable has no segment, and begins with the next open.
func TestCreateNotDurable(t *testing.T) {
	dir := t.TempDir()
	m := &model{}
	o := m.options(dir)
	o.Inline = true
	renamed := false
	o.FS = fault.New(vfs.OS(), func(op *fault.Op) error {
		renamed = renamed || strings.HasSuffix(op.To, ".wal")
		if renamed && op.Kind == wrap.SyncDir {
			return syscall.EIO
		}
		return nil
	})
	if l, err := Open(t.Context(), o); err == nil {
		l.Close()
		t.Fatal("opened")
	}
	names, err := os.ReadDir(filepath.Join(dir, "wal"))
	if err != nil || slices.ContainsFunc(names, func(e os.DirEntry) bool {
		return strings.HasSuffix(e.Name(), ".wal") || strings.HasSuffix(e.Name(), ".new")
	}) {
		t.Error(names, err)
	}
	l, _ := open(t, dir, func(*Options) {})
	defer l.Close()
	if !l.Report().Created {
		t.Error(l.Report())
	}
}
