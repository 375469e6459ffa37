//go:build linux || darwin

package vfs

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// Glance reads regular files, and neither follows links nor waits for other kinds of files.
func TestGlance(t *testing.T) {
	dir := t.TempDir()
	g := OS().(Glancer)
	path := func(name string) string { return filepath.Join(dir, name) }
	for name, data := range map[string][]byte{"empty": nil, "small": []byte("hello"), "large": bytes.Repeat([]byte("x"), 70000)} {
		if err := os.WriteFile(path(name), data, 0o600); err != nil {
			t.Fatal(err)
		}
		got, info, err := g.Glance(path(name), make([]byte, 3, 8), 70000)
		want, serr := OS().Stat(path(name))
		if err != nil || serr != nil || !bytes.Equal(got, data) || info != want {
			t.Errorf("%s: %d bytes, %+v, %v; want %+v", name, len(got), info, err, want)
		}
	}
	if got, info, err := g.Glance(path("large"), nil, 69999); err != nil || len(got) != 0 || info.Size != 70000 {
		t.Errorf("above the limit: %d bytes, %+v, %v", len(got), info, err)
	}
	if _, _, err := g.Glance(path("none"), nil, 10); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	if err := os.Symlink("small", path("link")); err != nil {
		t.Fatal(err)
	}
	if got, _, err := g.Glance(path("link"), nil, 10); err == nil {
		t.Errorf("a link was followed: %q", got)
	}
	if err := unix.Mkfifo(path("fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"fifo", "."} {
		if got, info, err := g.Glance(path(name), nil, 10); err != nil || len(got) != 0 || info.Mode.IsRegular() {
			t.Errorf("%s: %q, %+v, %v", name, got, info, err)
		}
	}
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return // only Linux tells them
	}
	for range 100 {
		_, _, _ = g.Glance(path("small"), nil, 10)
		_, _, _ = g.Glance(path("large"), nil, 10)
		_, _, _ = g.Glance(path("fifo"), nil, 10)
	}
	if after, err := os.ReadDir("/proc/self/fd"); err != nil || len(after) > len(open)+3 {
		t.Errorf("%d descriptors became %d, %v", len(open), len(after), err)
	}
}
