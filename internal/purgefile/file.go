package purgefile

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
)

// The names of the files in the folder wal/ that record purges.
const (
	Name      = "purges"
	TextsName = "purged-texts"
)

// most is the maximum size in bytes of wal/purges, and of wal/purged-texts, that this package reads.
const most = 1 << 30

// File is the file wal/purges of one store, the list of purged documents and redacted versions.
type File struct {
	fs   vfs.FS
	path string
}

// New returns the file wal/purges of the store in the folder dir.
func New(fsys vfs.FS, dir string) *File { return &File{fsys, filepath.Join(dir, "wal", Name)} }

// Path returns the path of the file.
func (f *File) Path() string { return f.path }

// notThere reports whether an error of reading the file means that the store has no such file: the file is missing, or
// something that no store wrote is at its path.
func notThere(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, errs.ErrInvalid) || errors.Is(err, errs.ErrTooLarge)
}

// Content is the parsed content of wal/purges.
type Content struct {
	Rows    *Table
	There   bool     // the file exists
	Size    int64    // in bytes
	Damaged [][]byte // lines whose checksum does not match
	First   int      // line number of the first damaged line; the first line has number 1
}

// Whole reports whether the file exists and the checksums of all its lines match.
func (c *Content) Whole() bool { return c.There && len(c.Damaged) == 0 }

// Read reads and parses the file. If the store has no such file, the result has no rows, and the field There is false.
func (f *File) Read() (c Content, err error) {
	c.Rows = new(Table)
	b, err := vfs.ReadFile(f.fs, f.path, most)
	if notThere(err) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	ReadRows(b, &c)
	return c, nil
}

// ReadRows parses lines of wal/purges and adds their rows to c.
func ReadRows(b []byte, c *Content) {
	if c.Rows == nil {
		c.Rows = new(Table)
	}
	c.There, c.Size = true, int64(len(b))
	n := 0
	for line := range bytes.Lines(b) {
		n++
		if r, ok := ParseRow(line); ok {
			c.Rows.Add(r)
			continue
		}
		if c.First == 0 {
			c.First = n
		}
		c.Damaged = append(c.Damaged, line)
	}
}

// Rows returns the lines of wal/purges for the given rows.
func Rows(list []Row) (b []byte, err error) {
	for i := range list {
		if b, err = AppendRow(b, &list[i]); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// Write writes the whole file, through a temporary file. The lines in damaged, whose checksums do not match, stay at
// the beginning of the file until a repair has examined them.
func (f *File) Write(list []Row, damaged [][]byte, temp string, perm fs.FileMode) error {
	var b []byte
	for _, line := range damaged {
		b = append(append(b, bytes.TrimSuffix(line, []byte("\n"))...), '\n')
	}
	rows, err := Rows(list)
	if err != nil {
		return err
	}
	return vfs.WriteDurable(f.fs, temp, f.path, append(b, rows...), perm)
}
