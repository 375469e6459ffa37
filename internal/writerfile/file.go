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

// tail is the number of bytes at the end of the file, with its newest lines, that are read first.
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

// New returns the file wal/writers of the store with a UUID, in the folder dir.
func New(fsys vfs.FS, dir string, store [16]byte) *File {
	return &File{fsys, filepath.Join(dir, "wal", Name), store}
}

// Path returns the path of the file.
func (f *File) Path() string { return f.path }

// notThere reports whether the file is missing, or something that no store wrote is in its place.
func notThere(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, errs.ErrInvalid) || errors.Is(err, errs.ErrTooLarge)
}

// forEachWriter calls yield for the writer that each line explains. whole reports whether the checksums of all
// lines match.
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

// Read reads the file, and returns its size. whole is false if there is no file, or the checksum of a line
// does not match.
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

// Damaged returns the number of lines of the file that have a wrong checksum, and the line number of the first of
// these.
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

// Below returns the writer that the file explains last below a position of the log, the zero Writer if there
// is none.
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

// Append appends a line for each writer; it returns false if the file does not end with a line whose checksum
// matches.
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

// Write writes the whole file, through a temporary file.
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
