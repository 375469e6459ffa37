package backup

import (
	"cmp"
	"encoding/base32"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
)

// target describes the folder that is created for a backup or a restored store, and the source of the copy.
type target struct {
	fs     vfs.FS
	dir    string // the folder to create: missing or empty
	source string // the folder of the store or backup that is copied
	kind   string // kind of copy, as the mark records it; see vfs.Mark
	store  uuid.UUID
	file   fs.FileMode
	folder fs.FileMode
	self   vfs.Users
	random func([]byte) error
}

// newFolder is a folder that is filled under a temporary name. It gets its final name only when it is complete.
// Until then it is marked (vfs.Mark) and locked: see the package comment.
type newFolder struct {
	fs      vfs.FS
	dir     string // name that the folder gets at the end
	part    string // temporary name during the copy
	lock    vfs.Lock
	barrier vfs.Barrier // syncs a group of files at once; nil: every file is synced
	mode    fs.FileMode
	folder  fs.FileMode
	left    []string        // leftovers of killed processes that were not removed, with the reason
	within  bool            // dir is a mount point: part is in it, and its content is moved up at the end
	moved   []string        // names that were moved into the mount point
	inner   map[string]bool // folders that were created for documents in trees
	entered sync.Mutex      // guards inner
	mark    vfs.Mark
}

const (
	partSuffix = ".partial"
	lockSuffix = ".lock"
	// baseMost is the maximum number of bytes of dir's name in the temporary name: file systems allow 255 bytes for a
	// name.
	baseMost = 200
)

// partName matches the name of an unfinished folder, or of its lock. A matching name is not enough to remove a folder.
var partName = regexp.MustCompile(`^(.+)\.[a-z2-7]{26}\.partial(\.lock)?$`)

var letters = base32.StdEncoding.WithPadding(base32.NoPadding)

// makeFolder creates the temporary folder and its lock.
func makeFolder(t target) (*newFolder, error) {
	t.dir = filepath.Clean(t.dir)
	within := t.mounted()
	n := &newFolder{dir: t.dir, mode: t.file, folder: t.folder, within: within,
		mark: vfs.Mark{Kind: t.kind, Store: t.store}}
	parent := filepath.Dir(t.dir)
	if within { // a mount point cannot be replaced, and its parent may be on another file system
		parent = t.dir
		n.left = t.clear(parent)
	}
	if err := t.free(); err != nil {
		return nil, err
	}
	if err := vfs.MkdirAll(vfs.Below(t.fs, t.dir), parent, t.folder); err != nil {
		return nil, fmt.Errorf("making %s: %w", parent, err)
	}
	if !within {
		n.left = t.clear(parent)
	}
	var chance [16]byte
	if err := t.random(chance[:]); err != nil {
		return nil, err
	}
	base := filepath.Base(t.dir)
	if len(base) > baseMost {
		base = strings.ToValidUTF8(base[:baseMost], "")
	}
	n.part = filepath.Join(parent, base+"."+strings.ToLower(letters.EncodeToString(chance[:]))+partSuffix)
	n.fs = t.below(n.part)
	// The lock is beside the folder, because some systems cannot rename a folder with an open file
	// in it.
	lock, ok, err := lockOf(n.fs, n.part, t.file)
	if err == nil && !ok {
		err = &errs.LockError{Path: n.part, Err: errors.New("another process is making this folder")}
	}
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", n.part, err)
	}
	n.lock = lock
	if err := n.begin(t); err != nil {
		return nil, errors.Join(err, n.discard(), n.close())
	}
	return n, nil
}

// begin creates the folder, and writes the mark of an unfinished folder before any other file.
func (n *newFolder) begin(t target) error {
	if err := n.fs.Mkdir(n.part, n.folder); err != nil {
		return fmt.Errorf("making %s: %w", n.part, err)
	}
	if t.self.MayFollow(n.fs, filepath.Dir(n.part), t.source) {
		if err := vfs.Alike(n.fs, n.part, filepath.Dir(n.part)); err != nil {
			return fmt.Errorf("giving %s the owner and mode of %s: %w", n.part, filepath.Dir(n.part), err)
		}
	}
	err := vfs.WriteMark(n.fs, n.part, n.mark, n.mode)
	if err == nil {
		n.barrier, err = n.fs.OpenBarrier(n.part)
		if errors.Is(err, errors.ErrUnsupported) {
			n.barrier, err = nil, nil
		}
	}
	return err
}

// free returns an error if the folder is not empty, or if another user has created it.
func (t *target) free() error {
	fsys := vfs.Below(t.fs, t.dir)
	names, err := vfs.Contents(fsys, t.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("examining %s: %w", t.dir, err)
	case len(names) > 0:
		return fmt.Errorf("%s is not empty (it contains %s): %w → give the path of a new folder",
			t.dir, human.Quote(slices.Min(names)),
			errs.ErrInvalid)
	}
	info, err := fsys.Stat(t.dir + "/.")
	if err != nil {
		return fmt.Errorf("examining %s: %w", t.dir, err)
	}
	return t.self.Admit(t.dir, &info, true) // the mode does not matter: the copy replaces the folder
}

// mounted reports whether the folder exists and is a mount point.
func (t *target) mounted() bool {
	fsys := vfs.Below(t.fs, t.dir)
	info, err := fsys.Stat(t.dir)
	return err == nil && info.Mode.IsDir() && vfs.IsMount(fsys, t.dir)
}

// below returns a file system that follows no link inside the folder of the target, inside the unfinished folder part,
// and at the path of the lock of part.
func (t *target) below(part string) vfs.FS {
	return vfs.Below(vfs.Below(vfs.Below(t.fs, t.dir), part), part+lockSuffix)
}

func lockOf(fsys vfs.FS, part string, perm fs.FileMode) (l vfs.Lock, ok bool, err error) {
	l, err = fsys.OpenLock(part+lockSuffix, perm)
	if err != nil {
		return nil, false, err
	}
	if ok, err = l.TryLock(vfs.ModeExclusive); err != nil || !ok {
		return nil, false, errors.Join(err, l.Close())
	}
	return l, true, nil
}

// clear removes the leftovers of killed processes that made copies of the same store in parent. It
// returns the reasons for which marked folders were not removed.
func (t *target) clear(parent string) (left []string) {
	names, err := vfs.ReadRoot(vfs.Below(t.fs, t.dir), parent)
	if err != nil {
		return nil // the creation of the folder reports the error
	}
	slices.Sort(names)
	seen := map[string]bool{}
	for _, name := range names {
		found := partName.FindStringSubmatch(name)
		if found == nil {
			continue
		}
		name = strings.TrimSuffix(name, lockSuffix)
		if seen[name] {
			continue
		}
		seen[name] = true
		if err := t.clearOne(filepath.Join(parent, name), filepath.Join(parent, found[1])); err != nil {
			left = append(left, err.Error())
		}
	}
	return left
}

// clearOne removes an unfinished folder that no process is filling, and the folder's lock. The parameter whole is the
// final name of the folder.
func (t *target) clearOne(part, whole string) error {
	fsys := vfs.Below(t.below(part), whole)
	is, err := t.isLeft(fsys, part, whole)
	if err != nil || !is {
		return nil // it may be a folder of the user
	}
	lock, ok, err := lockOf(fsys, part, t.file)
	if err != nil || !ok {
		return nil // a process is filling it
	}
	if is, err = t.isLeft(fsys, part, whole); err == nil && is {
		if err = notOpen(fsys, part, t.file); err == nil {
			err = vfs.RemoveKnown(fsys, part, knownName)
		}
	}
	if err == nil && is && t.marks(fsys, whole, part) { // the process was killed just after the folder was renamed
		err = fsys.Remove(filepath.Join(whole, vfs.MarkName))
	}
	if cerr := lock.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return t.dropLock(fsys, part)
}

// notOpen returns an error if a process has the folder open as a store. The present version never opens an unfinished
// folder; earlier versions did.
func notOpen(fsys vfs.FS, part string, perm fs.FileMode) error {
	name := filepath.Join(part, "wal", "attach.lock")
	if _, err := fsys.Stat(name); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	l, err := fsys.OpenLock(name, perm)
	if err != nil {
		return err
	}
	ok, err := l.TryLock(vfs.ModeExclusive)
	if err == nil && !ok {
		err = &errs.LockError{Path: part,
			Err: errors.New("a process has this folder open as a store, so the folder was not removed")}
	}
	return errors.Join(err, l.Close())
}

// dropLock removes the lock of a folder that no longer exists. No process holds it: the name is random
// and belongs to that folder alone.
func (t *target) dropLock(fsys vfs.FS, part string) error {
	info, err := fsys.Stat(part + lockSuffix)
	if err == nil && info.Mode.IsRegular() && info.Size == 0 {
		err = fsys.Remove(part + lockSuffix)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// isLeft reports whether an unfinished folder was created by a process of this user that copied the same store. The
// evidence is that the folder has the mark, that it contains at most an empty mark, or that only its lock exists: a
// process takes the lock before it creates the folder.
func (t *target) isLeft(fsys vfs.FS, part, whole string) (bool, error) {
	lock, lerr := fsys.Stat(part + lockSuffix)
	locked := lerr == nil && lock.Mode.IsRegular() && lock.Size == 0 && t.self.Own(&lock)
	info, err := fsys.Stat(part)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return locked, nil
	case err != nil || !info.Mode.IsDir() || !t.self.Own(&info) || vfs.IsMount(fsys, part):
		return false, err
	case t.marks(fsys, part, part):
		return true, nil
	}
	names, err := fsys.ReadDir(part)
	if err != nil || len(names) > 1 || len(names) == 1 && names[0] != vfs.MarkName {
		return false, err
	}
	if len(names) == 1 {
		mark, err := fsys.Stat(filepath.Join(part, vfs.MarkName))
		return err == nil && mark.Mode.IsRegular() && mark.Size == 0, err
	}
	return true, nil
}

// marks reports whether dir contains the mark for the unfinished folder part of a copy of the same store.
func (t *target) marks(fsys vfs.FS, dir, part string) bool {
	m, ok := vfs.ReadMark(fsys, dir)
	return ok && m.Name == filepath.Base(part) && m.Store == t.store && (m.Kind == kindBackup || m.Kind == kindRestore)
}

const (
	kindBackup  = "backup"
	kindRestore = "restore"
)

// knownName reports whether a backup or a restored store may have a file or folder of this name.
func knownName(rel string, folder bool) bool {
	switch rel {
	case vfs.MarkName, repair.BackupName, repair.BackupName + ".new", backupList, backupBy, backupPurges, packedPart:
		return !folder
	}
	return places.IsName(rel, folder)
}

// enter creates the missing parent folders of a file in a tree of documents. The folder of the kind usually exists.
// But some kinds have a folder only once the store has such a document, and the first one may have been written during
// the backup.
func (n *newFolder) enter(name string) error {
	if dir := filepath.Dir(name); n.exists(dir) {
		return nil
	}
	n.entered.Lock()
	defer n.entered.Unlock()
	return n.makeParents(name)
}

// exists reports whether newFolder creates the folder dir at the beginning, so that enter need not create it.
func (n *newFolder) exists(dir string) bool {
	parent := filepath.Dir(dir)
	if parent == dir {
		return true
	}
	k := kind.Filing(dir)
	return parent == "." && (k == nil || k.Feature == 0)
}

func (n *newFolder) makeParents(name string) error {
	dir := filepath.Dir(name)
	if n.exists(dir) || n.inner[dir] {
		return nil
	}
	if err := n.makeParents(dir); err != nil {
		return err
	}
	if err := n.fs.Mkdir(n.path(dir), n.folder); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("making %s: %w", n.path(dir), err)
	}
	if n.inner == nil {
		n.inner = map[string]bool{}
	}
	n.inner[dir] = true
	return nil
}

// inners returns the folders that enter and makeParents have created, each before the folders in it.
func (n *newFolder) inners() []string { return slices.Sorted(maps.Keys(n.inner)) }

func (n *newFolder) path(elem ...string) string {
	return filepath.Join(append([]string{n.part}, elem...)...)
}

// finish syncs everything in the folder, and renames the folder to its final name. folders are the paths of its
// subfolders. last is the name of the file that marks the folder as complete, "" for no such file; data is the content
// of that file.
func (n *newFolder) finish(last string, data []byte, folders ...string) error {
	if n.barrier != nil {
		if err := n.barrier.Sync(); err != nil {
			return fmt.Errorf("syncing %s: %w: %w", n.part, errs.ErrSyncFailed, err)
		}
	}
	for _, f := range append(append(folders, n.inners()...), "") {
		if err := n.fs.SyncDir(n.path(f)); err != nil {
			return fmt.Errorf("syncing %s: %w: %w", n.path(f), errs.ErrSyncFailed, err)
		}
	}
	if last != "" {
		if err := vfs.WriteDurable(n.fs, n.path(last+".new"), n.path(last), data, n.mode); err != nil {
			return fmt.Errorf("writing %s: %w", n.path(last), err)
		}
	}
	if n.within {
		return n.moveUp(last)
	}
	err := n.fs.Remove(n.dir) // an empty folder may be there
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", n.dir, err)
	}
	if err := n.fs.RenameNew(n.part, n.dir); err != nil {
		return fmt.Errorf("naming %s: %w", n.dir, err)
	}
	if err := n.fs.SyncDir(filepath.Dir(n.dir)); err != nil {
		return fmt.Errorf("syncing %s: %w: %w", filepath.Dir(n.dir), errs.ErrSyncFailed, err)
	}
	// The mark has the temporary name, so it has no effect if it stays.
	if err := n.fs.Remove(filepath.Join(n.dir, vfs.MarkName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("finishing %s: %w", n.dir, err)
	}
	return nil
}

// lastOf are the names of the files and folders that make a folder a store or a backup, in the order in which they are
// moved up.
var lastOf = []string{"wal", "checkpoint", "config.json", repair.BackupName}

// moveUp moves the content of the unfinished folder up into the mount point that contains it, and syncs. Until the
// last part is moved, the mount point has a mark that prevents it from being opened: documents alone would be a store.
// moveUp reports the remains of a move whose process was killed, and does not remove them.
func (n *newFolder) moveUp(last string) error {
	names, err := n.fs.ReadDir(n.part)
	if err != nil {
		return fmt.Errorf("reading %s: %w", n.part, err)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == vfs.MarkName })
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(slices.Index(lastOf, a), slices.Index(lastOf, b)), cmp.Compare(a, b))
	})
	if err := vfs.WriteMark(n.fs, n.dir, n.mark, n.mode); err != nil {
		return fmt.Errorf("marking %s: %w", n.dir, err)
	}
	n.moved = append(n.moved, vfs.MarkName)
	for i, name := range names {
		if i == len(names)-1 || name == last {
			if err := n.fs.SyncDir(n.dir); err != nil {
				return fmt.Errorf("syncing %s: %w: %w", n.dir, errs.ErrSyncFailed, err)
			}
		}
		if err := n.fs.RenameNew(n.path(name), filepath.Join(n.dir, name)); err != nil {
			return fmt.Errorf("moving %s to %s: %w", name, n.dir, err)
		}
		n.moved = append(n.moved, name)
	}
	if err := n.fs.SyncDir(n.dir); err != nil {
		return fmt.Errorf("syncing %s: %w: %w", n.dir, errs.ErrSyncFailed, err)
	}
	n.moved = nil // the folder is complete: discard must not remove it
	if err := n.fs.Remove(filepath.Join(n.dir, vfs.MarkName)); err != nil {
		return fmt.Errorf("finishing %s: %w", n.dir, err)
	}
	if err := vfs.RemoveKnown(n.fs, n.part, knownName); err != nil {
		return fmt.Errorf("finishing %s: %w", n.dir, err)
	}
	return nil
}

// discard removes everything that was created, after a failure.
func (n *newFolder) discard() error {
	err := vfs.RemoveKnown(n.fs, n.part, knownName)
	for _, top := range slices.Backward(n.moved) {
		known := func(rel string, folder bool) bool { return knownName(path.Join(top, rel), folder) }
		err = errors.Join(err, vfs.RemoveKnown(n.fs, filepath.Join(n.dir, top), known))
	}
	return err
}

// close closes the folder, complete or not, and removes its lock. No other process waits for the
// lock: its name is random.
func (n *newFolder) close() error {
	var err error
	if n.barrier != nil {
		err = n.barrier.Close()
	}
	if err = errors.Join(err, n.lock.Close()); err == nil {
		err = n.fs.Remove(n.part + lockSuffix)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
