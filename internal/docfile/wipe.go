package docfile

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/varve-db/varve/internal/vfs"
)

// DoomedSuffix is the end of the name of a file in tmp/ that is being overwritten. If the overwriting is interrupted, a
// half-overwritten document without this suffix would look like the work of a user. The modification time could be lost
// in a power failure, but the name is durable before the first byte is overwritten.
const DoomedSuffix = ".doomed"

func isDoomed(path string) bool { return strings.HasSuffix(path, DoomedSuffix) }

// wipeAtOnce is the maximum number of files that are held open at once for overwriting.
const wipeAtOnce = 64

// wipe overwrites and removes files of one folder in tmp/ that are no longer needed. The caller has opened and leased
// the files, and has made it durable that they are no longer at the documents' paths. If a file has got another link
// since it was examined, wipe parks it.
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
	return errors.Join(append(all, f.overwrite(doomed))...)
}

// wipeDirect is the maximum number of overwritten files that are synced separately; more files share one
// barrier.
const wipeDirect = 8

// overwrite overwrites files whose names already end in DoomedSuffix, durably, and removes them.
func (f *Flusher) overwrite(doomed []*temp) error {
	var barrier vfs.Barrier
	if len(doomed) > wipeDirect && f.o.Direct >= 0 {
		b, err := f.o.FS.OpenBarrier(f.o.Root) // before the first write; otherwise it misses a failure of that write
		if err == nil {
			barrier = b
			defer func() { _ = b.Close() }()
		} else if !errors.Is(err, errors.ErrUnsupported) {
			return failure("open a barrier on", f.o.Root, err)
		}
	}
	var all []error
	var zeroed []*temp
	for _, t := range doomed {
		done, err := f.zero(t)
		if err == nil && done && barrier == nil {
			if serr := t.file.Datasync(); serr != nil {
				err = syncFailure(f.o.rel(t.path), serr)
			}
		}
		if all = append(all, err); err == nil && done {
			zeroed = append(zeroed, t)
		}
	}
	if barrier != nil {
		if err := barrier.Sync(); err != nil { // they keep their names, which mark them as doomed
			return errors.Join(append(all, syncFailure("the file system of the store", err))...)
		}
	}
	for _, t := range zeroed {
		if err := f.o.FS.Remove(t.path); ignoreMissing(err) != nil {
			all = append(all, failure("remove", f.o.rel(t.path), err))
		}
	}
	return errors.Join(all...)
}

// doom renames a file so that its name ends in DoomedSuffix.
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

// zero overwrites the temp file t with zeros. If the file has got another link meanwhile, zero parks the file
// instead. done reports whether the file was overwritten.
func (f *Flusher) zero(t *temp) (done bool, err error) {
	info, err := t.file.Stat()
	if err != nil {
		return false, failure("examine", f.o.rel(t.path), err)
	}
	if info.Nlink != 1 {
		return false, f.parked.add(t.path,
			believed{folder: tempFolder, name: filepath.Base(t.path), size: info.Size, mtime: info.Mtime})
	}
	if err := vfs.Overwrite(t.file, 0); err != nil {
		return false, failure("overwrite", f.o.rel(t.path), err)
	}
	return true, nil
}
