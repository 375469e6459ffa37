package vfs

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLockedBy(t *testing.T) {
	name := filepath.Join(t.TempDir(), "some.lock")
	if pid := LockedBy(name); pid != 0 {
		t.Errorf("a missing file: %d", pid)
	}
	k, err := OS().OpenLock(name, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	want := func(want int) {
		t.Helper()
		if pid := LockedBy(name); pid != want {
			t.Errorf("%d, not %d", pid, want)
		}
	}
	want(0)
	for _, mode := range []Mode{ModeExclusive, ModeShared} {
		if ok, err := k.TryLock(mode); !ok || err != nil {
			t.Fatal(ok, err)
		}
		want(os.Getpid())
		if err := k.Unlock(); err != nil {
			t.Fatal(err)
		}
		want(0)
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
}
