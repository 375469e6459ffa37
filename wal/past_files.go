package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
)

// pastFiles has one segment open: its file, or its copy where there is no file,
// or where that was not what it should be.
type pastFiles struct {
	p      *Past
	number uint64
	src    source
	shut   func() error
	fell   map[uint64]bool // whose copies are asked first
}

func (f *pastFiles) open(number uint64) (source, error) {
	if f.src != nil && f.number == number {
		return f.src, nil
	}
	f.close()
	f.number = number
	if f.fell[number] {
		if err := f.openCopy(); err == nil || !errors.Is(err, errNoSegment) {
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
	// Recycling makes the copy first. What is no file has none of the segment, and counts as missing.
	return f.src, f.openCopy()
}

func (f *pastFiles) openCopy() error {
	c, err := openCopy(f.p.FS, f.p.Dir, f.number)
	if err == nil {
		f.src, f.shut = c, c.Close
	}
	return err
}

// fallOver has the copies asked for what should stand at a position: that of its
// segment and of the one in which the log goes on. false when they were already.
func (f *pastFiles) fallOver(at LSN) bool {
	f.close()
	n := f.p.Geometry.Number(at)
	if f.fell[n] && f.fell[n+1] {
		return false
	}
	if f.fell == nil {
		f.fell = map[uint64]bool{}
	}
	f.fell[n], f.fell[n+1] = true, true
	return true
}

func (f *pastFiles) close() {
	if f.src != nil {
		_ = f.shut()
		f.src = nil
	}
}
