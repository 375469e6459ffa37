package backup

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"

	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/wal/past"
)

// form is the destination of a backup: a folder, or one packed file. One goroutine calls the methods in this order,
// except stage, which the workers call.
type form interface {
	begin(info *repair.BackupInfo, folders []string) error
	// computed copies the first whole bytes of src, the file with the results of a re-embedding. It calls check before
	// each piece; an error of check ends the copying. After the last piece it calls keep: if keep returns true,
	// computed keeps the copy and returns kept = true; otherwise it removes the copy. size and sum are the size of a
	// kept copy and its sha256, as hexadecimal digits.
	computed(ctx context.Context, src vfs.File, whole int64, check func() error,
		keep func() (bool, error)) (size int64, sum string, kept bool, err error)
	// create creates a text file that the backup writes while it copies the documents.
	create(name string) (text, error)
	// stage writes the part of a document that may be written in any order. Workers call stage.
	stage(name string, d *Document) error
	// enter writes the rest of a document. The backup calls it in the order of ids.
	enter(name string, mark byte, d *Document, sum [sha256.Size]byte) error
	// segment writes a file of the log.
	segment(name string, write func(out io.WriterAt) error) error
	// file writes a short file.
	file(name string, data []byte) error
	// check reads the files again that can be read before the backup is complete.
	check(ctx context.Context, info *repair.BackupInfo) error
	// log returns the log from which the moments of the backup are read.
	log(info *repair.BackupInfo) *past.Log
	// finish writes backup.json, makes the backup durable, and gives the backup its final name.
	finish(ctx context.Context, info *repair.BackupInfo, manifest []byte, folders []string) error
	discard() error
	close() error
	leftovers() []string
}

// text is a file that is written from its beginning to its end. Sync makes it durable, Close is the last call.
type text interface {
	io.Writer
	Sync() error
	Close() error
}

// newForm begins a backup: a packed one if o requires it, otherwise the folder dir.
func newForm(s *Source, dir string, o repair.BackupOptions) (form, error) {
	t := target{
		fs: s.FS, dir: dir, source: s.Dir, kind: kindBackup, store: s.Log.UUID(), file: s.FileMode, folder: s.FolderMode,
		self: s.Self, random: s.Random,
	}
	if o.Packed || o.Output != nil {
		return newPacked(s, t, o)
	}
	n, err := makeFolder(t)
	if err != nil {
		return nil, err
	}
	return &folderForm{newFolder: n}, nil
}

// folderForm is a backup in a folder.
type folderForm struct {
	*newFolder
	computedBefore bool
}

func (f *folderForm) begin(_ *repair.BackupInfo, folders []string) error {
	for _, folder := range folders {
		if err := f.fs.Mkdir(f.path(folder), f.folder); err != nil {
			return err
		}
	}
	return nil
}

func (f *folderForm) computed(ctx context.Context, src vfs.File, whole int64, check func() error,
	keep func() (bool, error)) (size int64, sum string, kept bool, err error) {
	if !f.computedBefore {
		if err := f.fs.Mkdir(f.path(path.Dir(places.Computed)), f.folder); err != nil {
			return 0, "", false, err
		}
	}
	f.computedBefore = true
	next := places.Computed + ".new"
	size, sum, err = f.copy(ctx, src, whole, next, check)
	if err == nil {
		kept, err = keep()
	}
	switch from := f.path(filepath.FromSlash(next)); {
	case err != nil:
		return 0, "", false, err
	case kept:
		return size, sum, true, f.fs.Rename(from, f.path(filepath.FromSlash(places.Computed)))
	default:
		return 0, "", false, f.fs.Remove(from)
	}
}

// fileText is a text that is written to a file of a folder.
type fileText struct {
	vfs.File
	io.Writer
}

func (f *folderForm) create(name string) (text, error) {
	file, err := f.fs.OpenFile(f.path(name), os.O_RDWR|os.O_CREATE|os.O_EXCL, f.mode)
	if err != nil {
		return nil, err
	}
	return fileText{file, io.NewOffsetWriter(file, 0)}, nil
}

func (f *folderForm) stage(name string, d *Document) error {
	return f.write(filepath.FromSlash(name), d.Bytes, d.Time)
}

func (f *folderForm) enter(string, byte, *Document, [sha256.Size]byte) error { return nil }

func (f *folderForm) segment(name string, write func(out io.WriterAt) error) error {
	file, err := f.fs.OpenFile(f.path(backupWAL, name), os.O_RDWR|os.O_CREATE|os.O_EXCL, f.mode)
	if err != nil {
		return err
	}
	if err = write(file); err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

func (f *folderForm) file(name string, data []byte) error {
	return vfs.WriteDurable(f.fs, f.path(name+".new"), f.path(name), data, f.mode)
}

func (f *folderForm) check(ctx context.Context, info *repair.BackupInfo) error {
	return errors.Join(checkDocuments(ctx, f.fs, f.part, info, nil, func(err error) error { return err }),
		checkComputed(ctx, f.fs, f.part, info), checkWriters(f.fs, f.part, info), checkPurges(f.fs, f.part, info))
}

func (f *folderForm) log(info *repair.BackupInfo) *past.Log {
	return &past.Log{FS: f.fs, Dir: f.path(backupWAL), Geometry: geometryOf(info)}
}

func (f *folderForm) finish(_ context.Context, _ *repair.BackupInfo, manifest []byte, folders []string) error {
	return f.newFolder.finish(repair.BackupName, manifest, folders...)
}

func (f *folderForm) leftovers() []string { return f.left }
