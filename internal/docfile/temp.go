package docfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/varve-db/varve/internal/vfs"
)

// surplusTime is the modification time that marks a file in tmp/ that was examined and contains no work of a user. It
// is a whole, even second, which every file system can store. Saving the file changes the time.
var surplusTime = time.Date(1985, 10, 26, 1, 20, 0, 0, time.UTC)

// temp is a file in a worker's folder in tmp/. It contains no work of a user.
type temp struct {
	path string
	file vfs.File // open and, if the file was used before, leased; nil once closed
	size int64
	// the file has no name, and stays open until it has one; path is "" until then
	unnamed bool
}

// newName returns the path for a new file in the worker's folder in tmp/. No file that this worker knows has this
// path.
func (w *worker) newName() string {
	w.seq++
	return w.dir + strconv.FormatUint(w.seq, 10)
}

// take returns a temp file to write to: the file that was just replaced at a document's path, a file kept for
// reuse, or a new one. During a purge it does not use the files kept for reuse.
func (w *worker) take(c *Change) (*temp, error) {
	if w.f.keeps() && w.f.spares == nil {
		if err := w.retireTemp(); err != nil {
			return nil, err
		}
		return w.create(c)
	}
	if t := w.cur; t != nil {
		w.cur = nil
		return t, nil
	}
	for !w.f.keeps() && len(w.spare) > 0 && !w.f.fresh {
		path := w.spare[len(w.spare)-1]
		w.spare = w.spare[:len(w.spare)-1]
		t, err := w.reopen(path)
		if t != nil || err != nil {
			return t, err
		}
	}
	return w.create(c)
}

// reopen takes a file out of the pool of files kept for reuse. It returns nil if the file is gone or was changed. A
// changed file stays where it is, for EmptyTemp.
//
// Close calls reopen without flush.lock. So another process may empty tmp/ after this process has opened the file and
// before it has a lease: the other process finds that the file is open, parks it, and removes the folder. Then this
// process must not overwrite the inode. Once this process has the lease, the other process cannot open the file, so the
// name stays.
func (w *worker) reopen(path string) (*temp, error) {
	file, err := w.f.o.FS.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // emptied by another holder of flush.lock
	}
	if err != nil {
		return nil, failure("open", w.f.o.rel(path), err)
	}
	granted, err := file.Lease()
	if err == nil && granted {
		var info vfs.Info
		if info, err = file.Stat(); err == nil && w.reusable(info) && info.Mtime.Equal(surplusTime) && w.leadsTo(path, info) {
			return &temp{path: path, file: file, size: info.Size}, nil
		}
	}
	return nil, file.Close()
}

// leadsTo reports whether path is still a name of the file whose description is info.
func (w *worker) leadsTo(path string, info vfs.Info) bool {
	at, err := w.f.o.FS.Stat(path)
	return err == nil && inodeOf(at) == inodeOf(info)
}

func (w *worker) create(c *Change) (*temp, error) {
	if t, err := w.createUnnamed(c); t != nil || err != nil {
		return t, err
	}
	for {
		path := w.newName()
		file, err := w.f.o.FS.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, w.f.o.fileMode())
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, failure("make", w.f.o.rel(path), err)
		}
		if err := w.learn(file); err != nil {
			return nil, failure("examine", w.f.o.rel(path), err)
		}
		w.made++
		return &temp{path: path, file: file}, nil
	}
}

// moveOn switches the worker to a new folder when many files were created in the present one. ext4 searches for a free
// inode beginning at the block group of the folder. If the next two hundred groups are full, ext4 examines all of them
// for each file, which is a third of the cost of creating a file. The file system puts a new folder where there is
// room. If no folder can be created, the worker stays in the present one.
func (w *worker) moveOn() {
	if w.made < w.f.o.TempFiles || w.cur != nil || len(w.spare)+len(w.doomed) > 0 { // the pool is in one folder
		return
	}
	w.made = 0
	w.folders++
	name := w.number + "-" + strconv.Itoa(w.folders)
	if w.f.o.makeFolder(tempFolder, w.f.o.Token, name) != nil {
		return
	}
	w.past = append(w.past, w.name)
	w.enter(name)
	w.leave()
}

func (w *worker) enter(name string) {
	w.name, w.dir = name, w.f.o.path(tempFolder, w.f.o.Token, name)+string(filepath.Separator)
}

// leave removes the worker's earlier folders in tmp/ if they are empty.
func (w *worker) leave() {
	w.past = slices.DeleteFunc(w.past, func(name string) bool {
		return w.f.leave(w.f.o.path(tempFolder, w.f.o.Token, name))
	})
}

// reusable reports whether the file whose description is info may be reused as a temp file: it has only one name, and
// has the owner, the group and the mode of a file that this process creates. A process never writes into a file of
// another user of the group: only the owner may set the file's times and mode, and the system grants a lease on the
// file to no other user. Instead the file is parked, and removed after a while, as on systems without leases, and a new
// file is created.
//
// Measured in a store of two users, on two busy processors: a process replaces 1,000 to 11,000 files of the other user
// per second, and 10,000 to 27,000 of its own.
func (w *worker) reusable(info vfs.Info) bool {
	return info.Mode.IsRegular() && info.Nlink == 1 && w.like.Ino != 0 &&
		info.Mode == w.like.Mode && info.UID == w.like.UID && info.GID == w.like.GID
}

// write writes data to the file and sets the file's mtime. If sync is true, it also syncs the file. It closes a file
// that has a name. The file is never truncated to zero first: reusing its blocks is what makes reuse cheap.
func (t *temp) write(data []byte, mtime time.Time, sync bool) error {
	_, err := t.file.WriteAt(data, 0)
	if err == nil && t.size > int64(len(data)) {
		err = t.file.Truncate(int64(len(data)))
	}
	if err == nil {
		err = t.file.SetMtime(mtime)
	}
	if err == nil && sync {
		if serr := t.file.Sync(); serr != nil {
			err = syncFailure("a temp file", serr)
		}
	}
	if t.unnamed {
		return err
	}
	if cerr := t.close(); err == nil {
		err = cerr
	}
	return err
}

// drop removes a temp file that did not replace a document's file.
func (w *worker) drop(t *temp) error {
	if t.unnamed {
		return t.close()
	}
	err := w.f.o.FS.Remove(t.path)
	if t.file != nil {
		_ = t.file.Close() // after the removal: the lease keeps others out until it has no name
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return failure("remove", w.f.o.rel(t.path), err)
}

// keep makes t the next temp file to write to; the previous one goes to the pool of files kept for reuse.
func (w *worker) keep(t *temp) error {
	err := w.retireTemp()
	w.cur = t
	return err
}

// retireTemp marks the current temp file as surplus and adds it to the pool of files kept for reuse. It removes
// the file instead if the pool is full, or, during a purge, if the purge does not need the file (Spare).
func (w *worker) retireTemp() error {
	t := w.cur
	if t == nil {
		return nil
	}
	w.cur = nil
	if w.f.keeps() && w.f.spares != nil || len(w.spare)+len(w.doomed) >= w.f.o.Pool && !w.f.keeps() {
		return w.drop(t)
	}
	return w.putAside(t)
}

// putAside marks a temp file as surplus and adds it to the pool of files kept for reuse. In the last rounds before
// Close (Last), it adds the file to the list of files that Close overwrites.
func (w *worker) putAside(t *temp) error {
	err := t.file.SetMtime(surplusTime)
	if cerr := t.file.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return failure("put aside", w.f.o.rel(t.path), err)
	}
	if w.f.last && !w.f.keeps() && w.f.doom(t) == nil {
		w.doomed = append(w.doomed, t.path)
		return nil
	}
	w.spare = append(w.spare, t.path)
	return nil
}

// pool empties the worker's pool of files kept for reuse and returns their paths, in the order in which EmptyTemp goes
// through a folder. Close takes leases on the files in this order without flush.lock. If two processes took the leases
// in different orders, each could wait for a file that the other has.
func (w *worker) pool() []string {
	list := append(w.spare, w.doomed...)
	w.spare, w.doomed = nil, nil
	slices.Sort(list)
	return list
}

// empty removes the files kept for reuse. During a purge it keeps them, because the purge overwrites them.
func (w *worker) empty() error {
	var all []error
	if w.f.keeps() {
		err := w.retireTemp()
		w.pool()
		return err
	}
	if t := w.cur; t != nil {
		w.cur = nil
		all = append(all, w.drop(t))
	}
	for _, path := range w.pool() {
		t, err := w.reopen(path)
		if t != nil {
			err = w.drop(t)
		}
		all = append(all, err)
	}
	return errors.Join(all...)
}
