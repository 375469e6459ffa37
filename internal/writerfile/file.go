package writerfile

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/writer"
)

// Name is the name of the file in the folder wal/ that lists the writers.
const Name = "writers"

// most is the maximum number of bytes of the file that are read.
const most = 1 << 30

// tail is the number of bytes that are read at once from the end of the file, where the newest lines are.
const tail = 64 << 10

// longest is more than the length of a row, and farthest is the number of bytes without a row after which reading
// stops.
const (
	longest  = 16 << 10
	farthest = 1 << 20
)

// File is the file wal/writers of one store, which explains the numbers of writers.
type File struct {
	fs    vfs.FS
	path  string
	store [16]byte
}

// New returns a File for wal/writers in dir, the folder of the store. store is the UUID of the store. New does not
// access the file.
func New(fsys vfs.FS, dir string, store [16]byte) *File {
	return &File{fsys, filepath.Join(dir, "wal", Name), store}
}

// Path returns the path of the file.
func (f *File) Path() string { return f.path }

// notThere reports whether err means that the file is missing, is no regular file, or is too large to be a list of
// writers.
func notThere(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, errs.ErrInvalid) || errors.Is(err, errs.ErrTooLarge)
}

// forEachWriter calls yield with the writer in each line of rows. It skips lines whose checksum does not match; whole
// is false if there are such lines.
func (f *File) forEachWriter(rows []byte, yield func(w writer.Writer)) (whole bool) {
	whole = true
	for row := range bytes.Lines(rows) {
		if w, ok := writer.ParseRow(row, f.store); ok {
			yield(w)
		} else {
			whole = false
		}
	}
	return whole
}

// Read returns a table of the writers in the file, and the size of the file in bytes. whole is false if the file is
// missing or the checksum of a line does not match.
func (f *File) Read() (t *writer.Table, size int64, whole bool, err error) {
	t = new(writer.Table)
	b, err := vfs.ReadFile(f.fs, f.path, most)
	if notThere(err) {
		return t, 0, false, nil
	}
	if err != nil {
		return t, 0, false, err
	}
	whole = f.forEachWriter(b, t.Add)
	return t, int64(len(b)), whole, nil
}

// Damaged returns the number of lines in the file whose checksum does not match, and the line number of the first of
// these. Line numbers begin with 1; both results are 0 if no line is damaged.
func (f *File) Damaged() (damaged, first int, err error) {
	b, err := vfs.ReadFile(f.fs, f.path, most)
	if notThere(err) {
		return 0, 0, nil
	}
	n := 0
	for row := range bytes.Lines(b) {
		n++
		if _, ok := writer.ParseRow(row, f.store); ok {
			continue
		}
		if damaged++; first == 0 {
			first = n
		}
	}
	return damaged, first, err
}

// Below returns the newest writer in the file that began to write (Writer.Since) below a position of the log. It
// returns the zero Writer if the file has no such writer.
func (f *File) Below(position uint64) (newest writer.Writer, err error) {
	in, err := f.fs.OpenFile(f.path, os.O_RDONLY, 0)
	if notThere(err) {
		return newest, nil
	}
	if err != nil {
		return newest, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	info, err := in.Stat()
	if err != nil {
		return newest, err
	}
	size := info.Size
	if size > most {
		return newest, nil
	}
	// Backwards, in pieces that overlap by a row: rows are in the order of their positions, so the first
	// one found below the position is the newest. A file without a row in farthest bytes is not a file
	// of writers.
	b := make([]byte, min(size, tail))
	for end, seen := size, size; end > 0 && newest.Number == 0 && seen-end < farthest; {
		begin := max(0, end-tail)
		piece := b[:end-begin]
		if _, err := in.ReadAt(piece, begin); err != nil {
			return newest, err
		}
		f.forEachWriter(piece, func(w writer.Writer) {
			seen = begin
			if w.Since < position && w.Since >= newest.Since {
				newest = w
			}
		})
		if end = begin; begin > 0 {
			end = begin + longest
		}
	}
	return newest, nil
}

// Append appends a line for each writer in list, and syncs the file. done is false, and the file unchanged, if the
// last line of the file is damaged.
func (f *File) Append(list []writer.Writer, perm fs.FileMode) (done bool, err error) {
	b, err := f.rows(list)
	if err != nil {
		return false, err
	}
	out, err := f.fs.OpenFile(f.path, os.O_RDWR, perm)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	info, err := out.Stat()
	if err != nil {
		return false, err
	}
	end := make([]byte, min(info.Size, tail))
	if _, err := out.ReadAt(end, info.Size-int64(len(end))); err != nil {
		return false, err
	}
	last := end[bytes.LastIndexByte(bytes.TrimSuffix(end, []byte("\n")), '\n')+1:]
	if _, ok := writer.ParseRow(last, f.store); !ok {
		return false, nil
	}
	if _, err = out.WriteAt(b, info.Size); err == nil {
		err = out.Sync()
	}
	return err == nil, err
}

// Write replaces the file by one that has a line for each writer in list. It writes the temporary file temp first and
// then renames it.
func (f *File) Write(list []writer.Writer, temp string, perm fs.FileMode) error {
	b, err := f.rows(list)
	if err != nil {
		return err
	}
	return vfs.WriteDurable(f.fs, temp, f.path, b, perm)
}

func (f *File) rows(list []writer.Writer) (b []byte, err error) {
	for i := range list {
		if b, err = writer.AppendRow(b, f.store, &list[i]); err != nil {
			return nil, err
		}
	}
	return b, nil
}
