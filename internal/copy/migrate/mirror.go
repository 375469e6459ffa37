package migrate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/copy/backup"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal/past"
)

// mirror makes the rest of the new place equal to the old one, which no process is changing. Files
// with equal size and time are treated as equal, unless compare is set: then all bytes are
// compared.
func (m *migrate) mirror(ctx context.Context, compare bool) error {
	c := &mirror{m: m, ctx: ctx, compare: compare, step: "copying the remaining files"}
	m.sums = nil
	if compare {
		c.step = "comparing all files"
	}
	m.report.Left = nil
	names, err := places.Names(m.fs, m.s.From)
	if err != nil {
		return err
	}
	for _, name := range names {
		switch {
		case places.IsTopFile(name):
			err = c.file(name)
		case places.IsTopFolder(name):
			err = c.folder(name, vfs.Deepest)
		case name != places.MovedName && !strings.HasPrefix(name, places.MovedName):
			m.report.Left = append(m.report.Left, name)
		}
		if err != nil {
			return err
		}
	}
	mine, err := places.Names(m.fs, m.s.To)
	if err != nil {
		return err
	}
	for _, name := range mine {
		switch {
		case name == places.MigrationName, name == migrationLock, slices.Contains(names, name):
			continue
		case places.IsTopFile(name), places.IsTopFolder(name), temporary(name), name == places.MigrationName+".new":
			err = m.removeCopy(filepath.ToSlash(name))
		default:
			err = fmt.Errorf("%s does not belong to the store that is moved: %w → move this file or folder away",
				m.to(name), errs.ErrInvalid)
		}
		if err != nil {
			return err
		}
	}
	return m.fs.SyncDir(m.s.To)
}

type mirror struct {
	m       *migrate
	ctx     context.Context
	compare bool
	step    string
	done    int64
}

func (c *mirror) folder(name string, depth int) error {
	m := c.m
	if depth == 0 {
		return fmt.Errorf("%s is nested too deeply: %w", m.from(name), errs.ErrInvalid)
	}
	if info, err := m.fs.Stat(m.from(name)); err != nil {
		return err
	} else if !info.Mode.IsDir() {
		m.report.Left = append(m.report.Left, filepath.ToSlash(name))
		return nil
	}
	if err := m.folder(name); err != nil {
		return err
	}
	names, err := places.Names(m.fs, m.from(name))
	if err != nil {
		return err
	}
	keep := map[string]bool{}
	for _, n := range names {
		child := filepath.Join(name, n)
		if places.OfTheMachine(filepath.ToSlash(child)) {
			continue
		}
		info, err := m.fs.Stat(m.from(child))
		switch {
		case err != nil:
			return err
		case info.Mode.IsDir():
			err = c.folder(child, depth-1)
		case info.Mode.IsRegular():
			err = c.file(child)
		default:
			m.report.Left = append(m.report.Left, filepath.ToSlash(child))
			continue
		}
		if err != nil {
			return err
		}
		keep[n] = true
	}
	mine, err := places.Names(m.fs, m.to(name))
	if err != nil {
		return err
	}
	for _, n := range mine {
		if !keep[n] {
			if err := m.removeCopy(filepath.ToSlash(filepath.Join(name, n))); err != nil {
				return err
			}
		}
	}
	return m.fs.SyncDir(m.to(name))
}

// file copies one file, unless the copy is equal to the file.
func (c *mirror) file(name string) error {
	m := c.m
	if err := c.ctx.Err(); err != nil {
		return err
	}
	if c.done++; c.done%backup.HeldEvery == 0 {
		m.progress(c.step, c.done, max(c.done, m.live.Count))
	}
	info, err := m.fs.Stat(m.from(name))
	if err != nil {
		return err
	}
	old, err := m.fs.Stat(m.to(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	same := err == nil && old.Mode.IsRegular() && old.Size == info.Size && sameTime(old.Mtime, info.Mtime)
	exact := same && old.Mtime.Equal(info.Mtime)
	if exact && !c.compare {
		return nil
	}
	if same {
		sum, same, err := m.equal(name)
		if same && c.compare {
			m.sums = append(m.sums, sum)
		}
		if same || err != nil {
			return err
		}
		if exact {
			if err := c.replaceable(name); err != nil {
				return err
			}
		}
	}
	if err == nil && old.Mode.IsDir() {
		if err := m.removeCopy(filepath.ToSlash(name)); err != nil {
			return err
		}
	}
	if err := m.copyFile(name, info); err != nil || !c.compare {
		return err
	}
	sum, same, err := m.equal(name)
	m.sums = append(m.sums, sum)
	if err == nil && !same {
		err = fmt.Errorf("%s differs after it was written: %w → check the disk", m.to(name), errs.ErrCorrupt)
	}
	return err
}

// replaceable returns nil if a copy may be written again whose bytes differ from those of its file although size and
// time are equal, and an error if the copy may be the good one. For a document it always returns an error: the next
// run compares the copy with the store's document. For an archived copy of a segment, whose blocks have checksums, it
// returns an error if the file is damaged and the copy is not. It returns nil for all other files, which are checked
// when the copy is verified.
func (c *mirror) replaceable(name string) error {
	m := c.m
	top, _, _ := strings.Cut(filepath.ToSlash(name), "/")
	switch {
	case top != places.Working && places.IsDocuments(top):
	case filepath.Ext(name) == ".zst":
		from, err := m.wholeCopy(m.from(name))
		if err != nil || from {
			return err
		}
		to, err := m.wholeCopy(m.to(name))
		if err != nil || !to {
			return err
		}
	default:
		return nil
	}
	return &errs.CorruptionError{Path: m.from(name), Offset: -1, Err: fmt.Errorf(
		"the file or its copy %s has changed on the disk: size and time are equal, but the content differs; both are "+
			"kept → run the same command again, which finds the damaged one", m.to(name))}
}

// wholeCopy reports whether the copy of an archived segment passes its checksums.
func (m *migrate) wholeCopy(path string) (bool, error) {
	b, err := vfs.ReadFile(m.fs, path, places.CopyMost)
	if err != nil {
		return false, err
	}
	_, whole, ok := past.InflateCopy(b)
	return ok && whole, nil
}

// asksRoom is the size in bytes from which on a file is copied only if the disk has room for it: a sparse file may
// seem to have terabytes, and would fill the disk first.
const asksRoom = 64 << 20

func (m *migrate) copyFile(name string, info vfs.Info) error {
	if info.Size >= asksRoom {
		if v, err := m.fs.Volume(m.s.To); err == nil && v.Free < info.Size {
			return &errs.DiskFullError{Path: m.s.To, Need: info.Size, Free: v.Free,
				Err: fmt.Errorf("%s has %d bytes; if the file does not belong to the store, move the file away",
					m.from(name), info.Size)}
		}
	}
	from, err := m.fs.OpenFile(m.from(name), os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer from.Close()
	return m.put(name, info.Mtime, func(to vfs.File) error {
		b := make([]byte, min(1<<20, max(info.Size, 1)))
		for at := int64(0); at < info.Size; {
			n, err := readChunk(from, b, at)
			if err != nil {
				return err
			}
			if n == 0 {
				return fmt.Errorf("%s was truncated while it was copied: %w", m.from(name), errs.ErrConflict)
			}
			if _, err := to.WriteAt(b[:n], at); err != nil {
				return err
			}
			at += int64(n)
		}
		return nil
	})
}

func readChunk(f io.ReaderAt, b []byte, off int64) (int, error) {
	n, err := f.ReadAt(b, off)
	if err == io.EOF {
		err = nil
	}
	return n, err
}

// equal reports whether all bytes of a file and its copy are equal; sum is their hash.
func (m *migrate) equal(name string) (sum uint64, same bool, err error) {
	a, err := m.fs.OpenFile(m.from(name), os.O_RDONLY, 0)
	if err != nil {
		return 0, false, err
	}
	defer a.Close()
	b, err := m.fs.OpenFile(m.to(name), os.O_RDONLY, 0)
	if err != nil {
		return 0, false, err
	}
	defer b.Close()
	info, err := a.Stat()
	if err != nil {
		return 0, false, err
	}
	size := min(256<<10, info.Size+1)
	x, y := make([]byte, size), make([]byte, size)
	d := fileSum(name)
	for at := int64(0); ; {
		n, err := readChunk(a, x, at)
		if err != nil {
			return 0, false, err
		}
		k, err := readChunk(b, y, at)
		if err != nil {
			return 0, false, err
		}
		if !bytes.Equal(x[:n], y[:k]) {
			return 0, false, nil
		}
		if n == 0 {
			return d.Sum64(), true, nil
		}
		_, _ = d.Write(x[:n])
		at += int64(n)
	}
}
