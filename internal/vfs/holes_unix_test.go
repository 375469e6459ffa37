//go:build linux || darwin

package vfs

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The data of a sparse file are overwritten, and its holes stay holes: the disk has no room for 8 TiB of
// zeros.
func TestWipeSparse(t *testing.T) {
	const huge = 8 << 40
	name := filepath.Join(t.TempDir(), "sparse")
	must(t, os.WriteFile(name, nil, 0o600))
	if err := os.Truncate(name, huge); err != nil {
		t.Skipf("no files of 8 TiB here: %v", err)
	}
	secret := bytes.Repeat([]byte("secret"), 10_000)
	f := open(t, name, os.O_RDWR)
	defer f.Close()
	places := []int64{7, 1<<40 + 12345, huge - int64(len(secret))}
	for _, at := range places {
		if _, err := f.WriteAt(secret, at); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan error, 1)
	go func() { done <- Zero(f, 7) }() // no border of a page
	select {
	case err := <-done:
		must(t, err)
	case <-time.After(20 * time.Second):
		t.Fatal("it writes terabytes")
	}
	got := make([]byte, len(secret))
	for _, at := range places {
		if _, err := f.ReadAt(got, at); err != nil || !bytes.Equal(got, make([]byte, len(got))) {
			t.Errorf("at %d: %.20q, %v", at, got, err)
		}
	}
	var st unix.Stat_t
	must(t, unix.Stat(name, &st))
	if used := st.Blocks * 512; used > 64<<20 {
		t.Errorf("it takes %d bytes of the disk", used)
	}
}
