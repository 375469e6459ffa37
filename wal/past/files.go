package past

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
)

// Files reads segments by position. It keeps one segment open: the segment's file, or its copy in the archive if the
// file is missing or FallOver was called.
type Files struct {
	p      *Log
	number uint64
	src    Source
	shut   func() error
	fell   map[uint64]bool // numbers of the segments whose copies are read first
}

// Files returns a reader that reads the log's segments by position.
func (p *Log) Files() *Files { return &Files{p: p} }

// Open returns a reader of a segment's bytes. The reader is valid until the next call of Open, FallOver or Close.
func (f *Files) Open(number uint64) (Source, error) {
	if f.src != nil && f.number == number {
		return f.src, nil
	}
	f.Close()
	f.number = number
	if f.fell[number] {
		if err := f.OpenCopy(); err == nil || !errors.Is(err, ErrNoSegment) {
			return f.src, err
		}
	}
	file, err := f.p.FS.OpenFile(filepath.Join(f.p.Dir, segment.Name(number)), os.O_RDONLY, 0)
	if err == nil {
		f.src, f.shut = file, file.Close
		return f.src, nil
	}
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, vfs.ErrNotRegular) {
		return nil, fmt.Errorf("opening a segment: %w", err)
	}
	// Recycling writes the copy first. A name that is not a regular file counts as missing.
	return f.src, f.OpenCopy()
}

func (f *Files) OpenCopy() error {
	c, err := OpenCopy(f.p.FS, f.p.Dir, f.number)
	if err == nil {
		f.src, f.shut = c, c.Close
	}
	return err
}

// FallOver makes Files read the archived copies instead of the files, for the segment with position pos and for the
// next segment. It returns false if Files already reads the archived copies of these two segments.
func (f *Files) FallOver(pos LSN) bool {
	f.Close()
	n := f.p.Geometry.Number(pos)
	if f.fell[n] && f.fell[n+1] {
		return false
	}
	if f.fell == nil {
		f.fell = map[uint64]bool{}
	}
	f.fell[n], f.fell[n+1] = true, true
	return true
}

// Close closes the file that Files keeps open.
func (f *Files) Close() {
	if f.src != nil {
		_ = f.shut()
		f.src = nil
	}
}
