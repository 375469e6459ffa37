package docfile

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/vfs"
)

// Limits on the name of a document in a tree, besides those of the file system.
const (
	MostDepth   = vfs.Deepest - 4 // maximum number of elements of a path
	MostElement = 255             // maximum number of bytes of an element
	// maximum number of bytes of a path on disk: 1,024 for a path as users see it, plus the escapes of characters that
	// file names cannot have
	MostPath = 1280
)

// CheckPath returns nil if name is the path of a document in a tree, and an error otherwise. If a path is invalid on
// one of the systems that this program runs on, such as a path with a backslash, it is refused on all systems. The
// names of devices are the exception: they are refused only on the systems that have such devices.
func CheckPath(name string) error {
	refuse := func(limit string, err error) error {
		return &errs.FieldError{Field: "path", Value: human.Quote(name), Limit: limit, Err: err}
	}
	if len(name) > MostPath {
		return refuse(fmt.Sprintf("%d bytes", MostPath), errs.ErrTooLarge)
	}
	if !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return refuse("", errors.New("must be valid UTF-8 without control characters"))
	}
	depth := 0
	for elem := range strings.SplitSeq(name, "/") {
		if checkName(elem) != nil || !filepath.IsLocal(elem) {
			return refuse("", errors.New("must be a relative path, without empty elements, . and .., and with slashes only"))
		}
		if len(elem) > MostElement {
			return refuse(fmt.Sprintf("%d bytes for the name of a file or folder", MostElement), errs.ErrTooLarge)
		}
		depth++
	}
	if depth > MostDepth {
		return refuse(fmt.Sprintf("%d folders", MostDepth-1), errs.ErrTooLarge)
	}
	return nil
}

// IgnoresCase reports whether the file system ignores case: whether the folder is also found under its name in upper
// case.
func (f *Folder) IgnoresCase() bool {
	dir := f.l.path(f.name)
	info, err := f.l.FS.Stat(dir)
	if err != nil {
		return false
	}
	other, err := f.l.FS.Stat(f.l.path(strings.ToUpper(f.name)))
	return err == nil && other.Ino == info.Ino && other.Dev == info.Dev
}

// checkName returns nil if name can be the name of a document in the folder, and an error otherwise.
func (f *Folder) checkName(name string) error {
	if f.o.Tree {
		return CheckPath(name)
	}
	return checkName(name)
}

// ancestors returns the paths of the folders in f that contain a document, the outermost first. f itself is not
// included.
func (f *Folder) ancestors(name string) (dirs []string) {
	if !f.o.Tree {
		return nil
	}
	for at := range len(name) {
		if name[at] == '/' {
			dirs = append(dirs, f.Path(name[:at]))
		}
	}
	return dirs
}

// enter checks the folders that contain a document: each must exist, and none may be a link, because a link could lead
// out of the store. If a regular file is at the path of a folder, enter treats the folder as missing.
func (f *Folder) enter(name string) error {
	for _, dir := range f.ancestors(name) {
		info, err := f.l.FS.Stat(dir)
		switch {
		case err != nil:
			return err
		case info.Mode.IsRegular():
			return &fs.PathError{Op: "stat", Path: dir, Err: fs.ErrNotExist}
		case !info.Mode.IsDir():
			return notFolder(f.l.rel(dir), info.Mode)
		}
	}
	return nil
}

// missing returns an error that matches fs.ErrNotExist if a folder is at the path of a document in a tree: the document
// does not exist, although other documents may be in the folder. It returns nil if anything else is at the path.
func (f *Folder) missing(name string, info vfs.Info) error {
	if !f.o.Tree || !info.Mode.IsDir() {
		return nil
	}
	return failure("examine", f.rel(name), &fs.PathError{Op: "stat", Path: f.Path(name), Err: fs.ErrNotExist})
}

// ExcludedBy returns the path in f of a folder or file because of which a document in a tree cannot exist: a folder
// that is not empty at the document's path, or a file at the path of a folder that would contain the document. It
// returns "" if there is no such folder or file.
func (f *Folder) ExcludedBy(name string) string {
	if !f.o.Tree || f.checkName(name) != nil {
		return ""
	}
	for at := range len(name) {
		if name[at] != '/' {
			continue
		}
		switch info, err := f.l.FS.Stat(f.Path(name[:at])); {
		case err == nil && info.Mode.IsRegular():
			return name[:at]
		case err != nil || !info.Mode.IsDir():
			return ""
		}
	}
	if info, err := f.l.FS.Stat(f.Path(name)); err != nil || !info.Mode.IsDir() {
		return ""
	}
	if entries, err := f.l.FS.ReadDir(f.Path(name)); err != nil || len(entries) == 0 {
		return ""
	}
	return name
}

func notFolder(rel string, mode fs.FileMode) error {
	return &blockedError{rel: rel, mode: mode}
}

// blockedError reports that something other than a folder is at the path of a folder of documents.
type blockedError struct {
	rel  string
	mode fs.FileMode
}

func (e *blockedError) Error() string {
	return e.rel + " is " + kindOf(e.mode) +
		" at the path of a folder, and the store neither follows nor replaces it: move it away"
}
func (e *blockedError) Unwrap() error { return errs.ErrInvalid }

// MakeFor creates the folders in f that contain a document. It makes each durable in its parent.
func (f *Folder) MakeFor(name string) error {
	if err := f.checkName(name); err != nil {
		return err
	}
	return f.makeFolders(name, f.l.folderMode())
}

// makeFolders creates the folders that contain a document, and makes each durable in its parent. If something other
// than a folder is at the path of one, the error is a *blockedError.
func (f *Folder) makeFolders(name string, mode fs.FileMode) error {
	for _, dir := range f.ancestors(name) {
		info, err := f.l.FS.Stat(dir)
		if err == nil && info.Mode.IsDir() {
			continue
		}
		if err == nil {
			return notFolder(f.l.rel(dir), info.Mode)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return failure("examine the folder", f.l.rel(dir), err)
		}
		vanished, err := f.recordVanished(dir)
		if err != nil {
			return err
		}
		made := f.l.FS.Mkdir(dir, mode)
		if made != nil && !errors.Is(made, fs.ErrExist) {
			return failure("create the folder", f.l.rel(dir), made)
		}
		if err := f.l.FS.SyncDir(filepath.Dir(dir)); err != nil {
			if made == nil {
				_ = f.l.FS.Remove(dir) // the next process that needs it would treat it as durable
			}
			return syncFailure(f.l.rel(filepath.Dir(dir)), err)
		}
		if vanished {
			f.vanished.Store(true)
		}
	}
	return nil
}

// recordVanished is called before a folder is created again. If the folder must exist (FolderOptions.Kept),
// recordVanished records that its files are to be restored, so that they do not count as deleted, and returns true.
// Otherwise it returns false.
func (f *Folder) recordVanished(dir string) (bool, error) {
	kept, err := f.haveToExist()
	if err != nil {
		return false, err
	}
	for _, name := range kept {
		if f.Path(name) == dir {
			return true, f.Restore(name)
		}
	}
	return false, nil
}

// haveToExist returns the folders that FolderOptions.Kept returns.
func (f *Folder) haveToExist() ([]string, error) {
	if f.o.Kept == nil {
		return nil, nil
	}
	f.reading.Lock()
	defer f.reading.Unlock()
	info, err := f.l.FS.Stat(f.l.path(filepath.FromSlash(f.o.KeptBy)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && info == f.keptBy {
		return f.kept, nil
	}
	kept, err := f.o.Kept(f.l.FS, f.l.Root)
	if err == nil {
		f.kept, f.keptBy = kept, info
	}
	return kept, err
}

// removeEmpty removes the folders that contained a document that was removed or renamed, the innermost first. It stops
// at the first folder that is not empty or that FolderOptions.Kept returns. If Kept fails, removeEmpty removes nothing.
func (f *Folder) removeEmpty(name string) {
	dirs := f.ancestors(name)
	if len(dirs) == 0 {
		return
	}
	kept, err := f.haveToExist()
	if err != nil {
		return
	}
	for _, dir := range slices.Backward(dirs) {
		if slices.ContainsFunc(kept, func(name string) bool { return f.Path(name) == dir }) || f.l.FS.Remove(dir) != nil {
			return // something is in it
		}
	}
}

// Rename gives a file in a tree another path, and creates the folders for that path. It fails with fs.ErrExist if
// another file has the path. The change is not durable: after a crash the file may have its old path.
func (f *Folder) Rename(from, to string) error {
	if err := f.checkName(to); err != nil {
		return err
	}
	if err := f.enter(from); err != nil {
		return err
	}
	if err := f.makeFolders(to, f.l.folderMode()); err != nil {
		return err
	}
	old, at := f.Path(from), f.Path(to)
	err := f.l.FS.RenameNew(old, at)
	if errors.Is(err, fs.ErrExist) { // it may be the same file, where the file system treats both paths as one
		is, serr := f.l.FS.Stat(old)
		if other, oerr := f.l.FS.Stat(at); serr == nil && oerr == nil && is.Ino == other.Ino && is.Dev == other.Dev &&
			is.Nlink == 1 {
			err = f.l.FS.Rename(old, at)
		}
	}
	if err != nil {
		return failure("rename", f.rel(from), err)
	}
	f.removeEmpty(from)
	return nil
}

// InTheWay returns the path of a file or folder because of which a document cannot be created: anything at the
// document's own path, or anything except a folder at the path of a folder that contains the document. It returns "" if
// there is no such obstacle. If f is not a tree, it returns name without examining the disk.
func (f *Folder) InTheWay(name string) string {
	if !f.o.Tree {
		return name
	}
	for at := range len(name) {
		if name[at] != '/' {
			continue
		}
		if info, err := f.l.FS.Stat(f.Path(name[:at])); err != nil {
			return ""
		} else if !info.Mode.IsDir() {
			return name[:at]
		}
	}
	if _, err := f.l.FS.Stat(f.Path(name)); err != nil {
		return ""
	}
	return name
}

// Dirs returns the paths of the folder and of its subfolders, each parent before its children. Links are
// not followed.
func (f *Folder) Dirs() ([]string, error) {
	dirs := []string{filepath.Clean(f.dir)}
	if !f.o.Tree {
		return dirs, nil
	}
	_, below, err := f.list()
	for _, name := range below {
		dirs = append(dirs, f.Path(name))
	}
	return dirs, err
}

// list returns the paths of everything in the folder that is not a folder, and the paths of the folders. It lists a
// folder deeper than vfs.Deepest as if it were not a folder. An entry deeper than MostDepth is not a document.
func (f *Folder) list() (names, folders []string, err error) {
	var walk func(prefix string, depth int) error
	walk = func(prefix string, depth int) error {
		in, err := f.entries(prefix)
		if err != nil {
			return err
		}
		for _, e := range in {
			if !e.Type.IsDir() || depth == vfs.Deepest {
				names = append(names, prefix+e.Name) // its reader reports what is wrong with it
				continue
			}
			folders = append(folders, prefix+e.Name)
			if err := walk(prefix+e.Name+"/", depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	err = walk("", 1)
	slices.Sort(names)
	return names, folders, err
}

// entries returns the entries of a folder of the tree, sorted; prefix is its path with a trailing slash. A
// folder that was removed meanwhile has no entries.
func (f *Folder) entries(prefix string) ([]vfs.Entry, error) {
	dir := filepath.Clean(f.Path(prefix))
	list, err := vfs.ReadTypes(f.l.FS, dir)
	if err != nil && (prefix == "" || !errors.Is(err, fs.ErrNotExist)) {
		return nil, failure("list", strings.TrimSuffix(f.rel(prefix), "/"), err)
	}
	if prefix == "" {
		list = slices.DeleteFunc(list, func(e vfs.Entry) bool {
			return e.Type.IsDir() && len(vfs.WithoutLost(f.l.FS, dir, []string{e.Name})) == 0
		})
	}
	slices.SortFunc(list, func(a, b vfs.Entry) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// parkedMost is the maximum length in bytes of a document's name that is part of a parked file's name without being
// shortened.
const parkedMost = 120

var parkedEscapes = strings.NewReplacer("%", "%25", "/", "%2F", "@", "%40")

// ParkedName returns the form of a document's name that is part of the name of a parked file: without separators, and,
// if it is long, replaced by a hash and the end of the name.
func ParkedName(name string) string {
	if name = parkedEscapes.Replace(name); len(name) <= parkedMost {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return "%~" + hex.EncodeToString(sum[:8]) + "-" + human.Tail(name, parkedMost/2)
}

// unparked returns the document's name that the name of a parked file contains. The result may be shortened.
func unparked(name string) string {
	return strings.NewReplacer("%25", "%", "%2F", "/", "%40", "@").Replace(name)
}
