package wal

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// A process maps the page before it waits for open.lock. While it waits, the store is moved away and back,
// which leaves no page, and another process opens it: the page of that process counts.
func TestPageReplacedWhileWaiting(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := open(t, dir)
	mustAppend(t, l, put("ma", "1"))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	var first *FileLog
	var firstModel *model
	second, secondModel := open(t, dir, func(o *Options) {
		o.FS = wrap.New(vfs.OS(), func(op *wrap.Op, call func() error) error {
			err := call()
			if op.Kind == wrap.OpenShared && first == nil {
				if err := os.Remove(filepath.Join(dir, "wal", "shared")); err != nil {
					t.Fatal(err)
				}
				first, firstModel = open(t, dir)
			}
			return err
		})
	})
	t.Cleanup(func() { _, _ = first.Close(), second.Close() })
	mustAppend(t, first, put("mb", "2"))
	mustAppend(t, second, put("mc", "3"))
	mustAppend(t, first, put("md", "4"))
	mustAppend(t, second, put("me", "5"))
	mustAppend(t, first, put("mf", "6"))
	for _, key := range []string{"ma", "mb", "mc", "md", "me"} {
		if firstModel.val[key] == "" || secondModel.val[key] == "" {
			t.Errorf("%s: one has %q, the other one %q", key, firstModel.val[key], secondModel.val[key])
		}
	}
}
