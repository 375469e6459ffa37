package wal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
)

// The log writes into files where they are: the checkpoint, the segments, the shared page, the
// owner's note. A hard link in the place of one, as an archive may bring along or cp -al makes,
// is a file that somebody else has as well. So a process that opens a log alone gives it files
// of its own before it writes. No other process has the old ones open then. A link made while a log
// is open comes only from someone who copies the store like this, at the risk of that copy.

// sever does that; attach.lock is held exclusively, and nothing is mapped.
func (l *FileLog) sever() error {
	for _, name := range []string{"shared", "owner"} { // made again by each who is alone
		if l.linked(l.o.wal(name)) {
			if err := l.o.FS.Remove(l.o.wal(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return l.ioError("removing", l.o.wal(name), err)
			}
		}
	}
	files := []string{filepath.Join(l.o.Dir, "checkpoint")}
	names, err := l.o.FS.ReadDir(l.o.walDir())
	if err != nil {
		return l.ioError("reading", l.o.walDir(), err)
	}
	for _, name := range names {
		if _, ok := segment.ParseName(name); ok {
			files = append(files, l.o.wal(name))
		}
	}
	for _, name := range files {
		if l.linked(name) {
			if err := l.copyOver(name); err != nil {
				return l.ioError("giving the log a file of its own instead of a hard link:", name, err)
			}
		}
	}
	return nil
}

// linked reports whether a file has another name.
func (l *FileLog) linked(name string) bool {
	info, err := l.o.FS.Stat(name)
	return err == nil && info.Mode.IsRegular() && info.Nlink > 1
}

// copyOver puts a copy of a file in its place, durably.
func (l *FileLog) copyOver(name string) error {
	from, err := l.o.FS.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	info, err := from.Stat()
	if err != nil {
		return err
	}
	if info.Size > segment.MaxSize {
		return fmt.Errorf("%d bytes are more than a segment may have", info.Size)
	}
	tmp := l.o.wal(fmt.Sprintf("%d-own.new", l.host.PID)) // the next recovery removes it
	to, err := vfs.CreateNew(l.o.FS, tmp, l.o.FileMode)
	if err != nil {
		return err
	}
	n, err := io.Copy(io.NewOffsetWriter(to, 0), io.NewSectionReader(from, 0, info.Size))
	if err == nil && n < info.Size {
		err = io.ErrUnexpectedEOF
	}
	if err == nil {
		err = to.Sync()
	}
	if cerr := to.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = l.o.FS.Rename(tmp, name)
	}
	if err != nil {
		_ = l.o.FS.Remove(tmp)
		return err
	}
	return l.o.FS.SyncDir(filepath.Dir(name))
}
