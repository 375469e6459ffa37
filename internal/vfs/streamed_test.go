package vfs

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// ahead notes what of its files was begun to be written to the disk.
type ahead struct {
	FS
	bytes int64
}

type aheadFile struct {
	*osFile
	of *ahead
}

func (a *ahead) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := a.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &aheadFile{f.(*osFile), a}, nil
}

func (f *aheadFile) SyncAhead(off, n int64) {
	f.osFile.SyncAhead(off, n)
	f.of.bytes += n
}

// A long file is on its way to the disk before its end; a short piece is left to the sync there.
func TestStreamed(t *testing.T) {
	dir := t.TempDir()
	fsys := &ahead{FS: OS()}
	piece := bytes.Repeat([]byte("0123456789abcdef"), pieceAhead/16)
	const pieces, tail = 5, 100
	must(t, WriteDurableBy(fsys, filepath.Join(dir, "temp"), filepath.Join(dir, "long"), func(to io.WriterAt) error {
		for i := range pieces {
			if _, err := to.WriteAt(piece, int64(i*len(piece))); err != nil {
				return err
			}
		}
		_, err := to.WriteAt(piece[:tail], int64(pieces*len(piece)))
		return err
	}, 0o600))
	b, err := os.ReadFile(filepath.Join(dir, "long"))
	must(t, err)
	if want := append(bytes.Repeat(piece, pieces), piece[:tail]...); !bytes.Equal(b, want) {
		t.Error("the file is another")
	}
	if fsys.bytes != int64(pieces*len(piece)) {
		t.Errorf("%d bytes of %d were begun", fsys.bytes, pieces*len(piece))
	}
}
