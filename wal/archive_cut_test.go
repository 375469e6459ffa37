package wal

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestArchiveOverwritesACutCopy: a copy that was cut has left a file that a purge cannot reach
// once it is removed. While things are to be overwritten, so is that.
func TestArchiveOverwritesACutCopy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := open(t, dir)
	defer l.Close()
	fill(t, l, 2)
	name := filepath.Join(l.o.wal("archive"), filepath.Base(archiveName(1))+".new")
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, bytes.Repeat([]byte("secret"), 100), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	l.FailPurge()
	if err := l.ArchiveSegment(1); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(f); err != nil || bytes.Contains(b, []byte("secret")) {
		t.Errorf("its blocks hold %.20q, %v", b, err)
	}
}
