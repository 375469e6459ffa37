package vfs

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// syncing records how much of its files was written at each sync.
type syncing struct {
	FS
	at   []int64
	fail error
}

type syncingFile struct {
	*osFile
	of   *syncing
	size int64
}

func (s *syncing) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := s.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &syncingFile{osFile: f.(*osFile), of: s}, nil
}

func (f *syncingFile) WriteAt(p []byte, off int64) (int, error) {
	f.size = max(f.size, off+int64(len(p)))
	return f.osFile.WriteAt(p, off)
}

func (f *syncingFile) Datasync() error {
	f.of.at = append(f.of.at, f.size)
	if f.of.fail != nil {
		return f.of.fail
	}
	return f.osFile.Datasync()
}

// A long file is synced in pieces, a short one once; writing ends at the first sync that fails.
func TestStreamed(t *testing.T) {
	dir := t.TempDir()
	piece := bytes.Repeat([]byte("0123456789abcdef"), streamPiece/2/16)
	long := func(fsys *syncing, pieces int) error {
		return WriteDurableBy(fsys, filepath.Join(dir, "temp"), filepath.Join(dir, "long"), func(to io.WriterAt) error {
			for i := range pieces {
				if _, err := to.WriteAt(piece, int64(i*len(piece))); err != nil {
					return err
				}
			}
			return nil
		}, 0o600)
	}
	fsys := &syncing{FS: OS()}
	must(t, long(fsys, 2))
	if fsys.at != nil {
		t.Errorf("synced at %v before the end", fsys.at)
	}
	must(t, long(fsys, 5))
	if len(fsys.at) != 2 || fsys.at[0] != streamPiece || fsys.at[1] != 2*streamPiece {
		t.Errorf("synced at %v", fsys.at)
	}
	b, err := os.ReadFile(filepath.Join(dir, "long"))
	must(t, err)
	if !bytes.Equal(b, bytes.Repeat(piece, 5)) {
		t.Error("the file is another")
	}
	if err := long(&syncing{FS: OS(), fail: syscall.EIO}, 3); err != syscall.EIO {
		t.Errorf("a sync that failed: %v", err)
	}
	if b, err = os.ReadFile(filepath.Join(dir, "long")); err != nil || len(b) != 5*len(piece) {
		t.Errorf("the file before is gone: %d bytes, %v", len(b), err)
	}
}
