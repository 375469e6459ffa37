package docfile

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/varve-db/varve/internal/vfs"
)

// DoomedSuffix marks a file in tmp/ that is being overwritten. Cut amid it, half of a
// document would look like somebody's work; its mtime may be lost with the power, its
// name is durable before the first byte goes.
const DoomedSuffix = ".doomed"

func isDoomed(path string) bool { return strings.HasSuffix(path, DoomedSuffix) }

// wipeAtOnce is how many files are held open for it.
const wipeAtOnce = 64

// wipe overwrites surplus files of one folder in tmp/ and removes them. They are open and
// leased, and have left their places durably. One that was linked since it was looked at
// is parked.
func (f *Flusher) wipe(dir string, list []*temp) error {
	var all []error
	for len(list) > 0 {
		n := min(len(list), wipeAtOnce)
		all = append(all, f.wipeSome(dir, list[:n]))
		list = list[n:]
	}
	return errors.Join(all...)
}

func (f *Flusher) wipeSome(dir string, list []*temp) error {
	var all []error
	defer func() {
		for _, t := range list {
			_ = t.file.Close() // after the removal: the lease keeps others out until it has no name
		}
	}()
	var doomed []*temp
	for _, t := range list {
		err := f.doom(t)
		if err == nil {
			doomed = append(doomed, t)
		}
		all = append(all, ignoreMissing(err))
	}
	if len(doomed) == 0 {
		return errors.Join(all...)
	}
	if err := f.o.FS.SyncDir(dir); err != nil {
		return errors.Join(append(all, syncFailure(f.o.rel(dir), err))...)
	}
	for _, t := range doomed {
		all = append(all, f.wipeOne(t))
	}
	return errors.Join(all...)
}

// doom gives a file the name that says so.
func (f *Flusher) doom(t *temp) error {
	if isDoomed(t.path) {
		return nil
	}
	for n := 0; ; n++ {
		to := t.path + DoomedSuffix
		if n > 0 {
			to = t.path + "." + strconv.Itoa(n) + DoomedSuffix
		}
		err := f.o.FS.RenameNew(t.path, to)
		if errors.Is(err, fs.ErrExist) && n < copies {
			continue
		}
		if err != nil {
			return failure("rename", f.o.rel(t.path), err)
		}
		t.path = to
		return nil
	}
}

func (f *Flusher) wipeOne(t *temp) error {
	info, err := t.file.Stat()
	if err != nil {
		return failure("look at", f.o.rel(t.path), err)
	}
	if info.Nlink != 1 {
		return f.parked.add(t.path, believed{folder: tempFolder, name: filepath.Base(t.path), size: info.Size, mtime: info.Mtime})
	}
	if err := vfs.Zero(t.file, 0); err != nil {
		return failure("overwrite", f.o.rel(t.path), err)
	}
	if err := f.o.FS.Remove(t.path); ignoreMissing(err) != nil {
		return failure("remove", f.o.rel(t.path), err)
	}
	return nil
}
