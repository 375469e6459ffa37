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

// The log writes into existing files: the checkpoint, the segments, the shared page, wal/owner. If one of them
// is a hard link, as an archive may create or cp -al does, the same file belongs to another folder as well. So
// a process that opens a log while no other process is attached replaces linked files by copies before it
// writes. No other process has the old files open then. While a log is open, only a program that copies the
// store makes such a link, and takes that risk.

// sever replaces the files of the log that are hard links by copies. Otherwise a write would also change the files of
// the other folder. The caller holds attach.lock in exclusive mode, and no file is mapped.
func (l *FileLog) sever() error {
	for _, name := range []string{"shared", "owner"} { // each recovery creates these again
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
				return l.ioError("replacing the hard link by a copy:", name, err)
			}
		}
	}
	return nil
}

// linked reports whether a file has more than one hard link.
func (l *FileLog) linked(name string) bool {
	info, err := l.o.FS.Stat(name)
	return err == nil && info.Mode.IsRegular() && info.Nlink > 1
}

// copyOver replaces a file by a copy of it, durably.
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
		return fmt.Errorf("the file has %d bytes, more than the maximum of a segment", info.Size)
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
