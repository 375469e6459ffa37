package docfile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
)

// readTries is the maximum number of times that Folder.Read opens a file, if the file is replaced each time while it
// is being opened. An attempt fails only if the next replacement comes within microseconds.
const readTries = 100

// Folder is one folder of documents, such as memories/. All methods may be
// called from several goroutines.
type Folder struct {
	l    Layout
	name string
	dir  string // path, with a trailing separator
	o    FolderOptions

	recording sync.Mutex  // held while RestoringFile is written
	vanished  atomic.Bool // a folder that has to exist was missing and was created again: see Vanished

	reading sync.Mutex
	kept    []string // last result of FolderOptions.Kept, for the state keptBy of the file that Kept reads
	keptBy  vfs.Info
}

// FolderOptions are the properties of a folder. The zero value is a folder of JSON documents.
type FolderOptions struct {
	// Tree means that a name is a path with slashes, and documents are in subfolders. See the package comment.
	Tree bool
	// Empty means that an empty file is a valid document; otherwise it is damage.
	Empty bool
	// KeepMode means that a file which replaces another one gets the permission bits of that file, because the files
	// belong to the user. See modeOver.
	KeepMode bool
	// Most is the maximum number of bytes of a document. A larger file is not read. If Most is 0, the limit is the one
	// that the caller of Read passes.
	Most int64
	// Kept returns the paths of the folders in a tree that must exist. They are not removed with the last document in
	// them. If such a folder is missing, this is recorded before the folder is created again (Folder.Restore). If Kept
	// is nil, no folder must exist.
	Kept func(fsys vfs.FS, root string) ([]string, error)
	// KeptBy is the path, in the store, of the file that Kept reads: as long as that is unchanged, Kept is not called
	// again.
	KeptBy string
}

// Folder returns the folder of documents with this name below the root. It does not access the disk.
func (l Layout) Folder(name string) *Folder { return l.FolderOf(name, FolderOptions{}) }

// FolderOf returns the folder of documents with this name, and with the given options. It does not access the disk.
func (l Layout) FolderOf(name string, o FolderOptions) *Folder {
	return &Folder{l: l, name: name, dir: l.path(name) + string(filepath.Separator), o: o}
}

// Name returns the folder's own name.
func (f *Folder) Name() string { return f.name }

// Make creates the folder if it is missing, durably. It refuses a symbolic link.
func (f *Folder) Make() error {
	if err := checkName(f.name); err != nil {
		return err
	}
	return f.l.makeFolder(f.name)
}

// Check returns an error if the folder is missing or is not a folder.
func (f *Folder) Check() error { return f.l.checkFolder(filepath.Clean(f.dir)) }

// Path returns the path of a document in the file system.
func (f *Folder) Path(name string) string {
	if f.o.Tree {
		name = filepath.FromSlash(name)
	}
	return f.dir + name
}

// rel returns the path of a document relative to the store.
func (f *Folder) rel(name string) string { return f.name + "/" + name }

// Stat describes the file or other object at a document's path. It does not open the object, and does not follow a
// link.
func (f *Folder) Stat(name string) (vfs.Info, error) {
	if err := f.checkName(name); err != nil {
		return vfs.Info{}, err
	}
	if err := f.enter(name); err != nil {
		return vfs.Info{}, failure("examine", f.rel(name), err)
	}
	info, err := f.l.FS.Stat(f.Path(name))
	if err != nil {
		return info, failure("examine", f.rel(name), err)
	}
	return info, f.missing(name, info)
}

// Read returns a document's bytes and the Info of the document's file. A file of more than limit bytes is an error; 0
// means no limit. If the document does not exist, and only then, the error matches fs.ErrNotExist. An empty file is
// damage, unless FolderOptions.Empty is set.
//
// All bytes come from one file, which had this name while it was open, even if files are replaced and reused meanwhile.
// If another program saves in place at the same time, the bytes may still be partly old and partly new. The caller can
// detect that with the content hash.
func (f *Folder) Read(name string, limit int64) ([]byte, vfs.Info, error) {
	if err := f.checkName(name); err != nil {
		return nil, vfs.Info{}, err
	}
	if err := f.enter(name); err != nil {
		return nil, vfs.Info{}, failure("open", f.rel(name), err)
	}
	for range readTries {
		data, info, again, err := f.readOnce(name, limit)
		if !again {
			return data, info, err
		}
	}
	return nil, vfs.Info{}, fmt.Errorf("read %s: replaced %d times while being opened", f.rel(name),
		readTries)
}

func (f *Folder) readOnce(name string, limit int64) (_ []byte, info vfs.Info, again bool, err error) {
	path := f.Path(name)
	file, err := f.l.FS.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		if st, serr := f.l.FS.Stat(path); serr == nil && !st.Mode.IsRegular() {
			return nil, st, false, cmp.Or(f.missing(name, st), f.regular(name, st))
		}
		return nil, info, false, failure("open", f.rel(name), err)
	}
	defer func() { _ = file.Close() }()
	if info, err = file.Stat(); err != nil {
		return nil, info, false, failure("examine", f.rel(name), err)
	}
	if err := cmp.Or(f.missing(name, info), f.regular(name, info)); err != nil {
		return nil, info, false, err
	}
	// An open that had found the inode and then waited for the lease of a flusher may have another
	// document's file by now. While the inode is in its place and we have it open, no new lease on it is
	// granted.
	switch now, err := f.l.FS.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, info, true, nil
	case err != nil:
		return nil, info, false, failure("examine", f.rel(name), err)
	case now.Ino != info.Ino || now.Dev != info.Dev:
		return nil, info, true, nil
	}
	if f.o.Most > 0 && (limit <= 0 || f.o.Most < limit) {
		limit = f.o.Most
	}
	data, err := readAll(file, info.Size, limit)
	if err != nil {
		return nil, info, false, failure("read", f.rel(name), err)
	}
	after, err := file.Stat()
	if err != nil {
		return nil, info, false, failure("examine", f.rel(name), err)
	}
	if after.Size != info.Size || !after.Mtime.Equal(info.Mtime) {
		return nil, info, true, nil // saved in place meanwhile
	}
	if len(data) == 0 && !f.o.Empty {
		return nil, info, false, &errs.CorruptionError{Path: f.rel(name), Offset: -1, Err: errors.New("the file is empty")}
	}
	return data, info, false, nil
}

// regular returns an error if info does not describe a regular file.
func (f *Folder) regular(name string, info vfs.Info) error {
	if info.Mode.IsRegular() {
		return nil
	}
	return fmt.Errorf("%s is %s, and must be a regular file: move it away: %w", f.rel(name), kindOf(info.Mode),
		errs.ErrInvalid)
}

// readAll reads size bytes from the start of r. It returns an error if size is above limit, or if the bytes are zeros:
// see vfs.ReadText.
func readAll(r io.ReaderAt, size, limit int64) ([]byte, error) {
	if limit > 0 && size > limit {
		return nil, fmt.Errorf("%w: the file has %d bytes, the limit is %d", errs.ErrTooLarge, size, limit)
	}
	return vfs.ReadTextAt(r, size)
}
