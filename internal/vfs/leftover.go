package vfs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/varve-db/varve/errs"
)

// MarkName is the name of the file that marks a folder which a process is still making.
const MarkName = "varve-unfinished.json"

// markMost is the maximum size of a mark in bytes.
const markMost = 64 << 10

// Mark is the content of the file MarkName. The process that creates a folder durably writes this file first, and
// removes it when the folder is complete. A folder counts as a leftover only if it has a mark that names this folder
// and the lock of the process that made it is free. A folder is never a leftover only because of its name.
type Mark struct {
	Format int       `json:"varve_unfinished"` // version of the mark: MarkFormat
	Name   string    `json:"name"`             // name of the folder; a mark that names another folder is ignored
	Kind   string    `json:"kind"`             // kind of folder that is being made: backup, restore, view
	Store  uuid.UUID `json:"store"`            // UUID of the store from which it is made
}

// MarkFormat is the version of marks that this program writes.
const MarkFormat = 1

// WriteMark durably writes the mark m into the folder dir, which this process has just created. The mark shows that
// the folder is unfinished.
func WriteMark(fsys FS, dir string, m Mark, perm fs.FileMode) error {
	m.Format, m.Name = MarkFormat, filepath.Base(dir)
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, MarkName)
	f, err := fsys.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(append(b, '\n'), 0)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = fsys.SyncDir(dir)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// ReadMark returns the mark of a folder; false if the folder has none in this format.
func ReadMark(fsys FS, dir string) (m Mark, ok bool) {
	b, err := ReadFile(fsys, filepath.Join(dir, MarkName), markMost)
	ok = err == nil && json.Unmarshal(b, &m) == nil && m.Format == MarkFormat
	return m, ok
}

// Unfinished returns the mark of a folder that was never finished. It returns false for any other folder: for example,
// if a process was killed just after it gave the finished folder its final name, the mark in the folder names another
// folder.
func Unfinished(fsys FS, dir string) (m Mark, ok bool) {
	m, ok = ReadMark(fsys, dir)
	return m, ok && m.Name == filepath.Base(dir)
}

// IsMount reports whether a folder is a mount point, of a file system or of another folder.
func IsMount(fsys FS, name string) bool {
	if isMount(name) {
		return true
	}
	info, err := fsys.Stat(name)
	up, uerr := fsys.Stat(filepath.Dir(name) + "/.")
	return err == nil && uerr == nil && info.Dev != up.Dev
}

// NotOursError reports that a folder was not removed because of a file in it that Varve did not create. It matches
// errs.ErrInvalid.
type NotOursError struct {
	Path   string // the file
	Folder string // the folder that was to be removed
	Why    string
}

func (e *NotOursError) Error() string {
	const what = "%s %s, so the folder %s was not removed: move away your own files in this folder, then remove the " +
		"folder"
	return fmt.Sprintf(what, e.Path, e.Why, e.Folder)
}

func (e *NotOursError) Unwrap() error { return errs.ErrInvalid }

// RemoveKnown removes a file, or a folder with its contents, if the function approve returns true for every name.
// The argument rel of approve is a path relative to name, with slashes; it is "." for name itself. RemoveKnown
// follows no links, enters no mounts, and removes only regular files and folders. It checks everything before it
// removes the first file. If approve returns false for a name, RemoveKnown returns a *NotOursError and removes
// nothing.
func RemoveKnown(fsys FS, name string, approve func(rel string, folder bool) bool) error {
	for _, remove := range []bool{false, true} {
		if err := removeKnown(fsys, name, ".", approve, Deepest, remove); err != nil {
			return err
		}
	}
	return nil
}

// markLast compares two names in the order in which a folder's files are removed: the mark comes last.
func markLast(a, b string) int {
	switch {
	case a == b:
		return 0
	case a == MarkName:
		return 1
	case b == MarkName:
		return -1
	}
	return strings.Compare(a, b)
}

// Deepest is the maximum depth of nested folders that are inspected. The limit on the depth of a document's path
// (docfile.MostDepth) is lower, so that a copy of a store may itself be in nested folders.
const Deepest = 64

func removeKnown(fsys FS, root, rel string, known func(rel string, folder bool) bool, depth int, remove bool) error {
	path := filepath.Join(root, filepath.FromSlash(rel))
	refuse := func(why string) error { return &NotOursError{Path: path, Folder: root, Why: why} }
	info, err := fsys.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode.IsDir() && !info.Mode.IsRegular():
		return refuse("is " + KindOf(info.Mode))
	case !known(rel, info.Mode.IsDir()):
		return refuse("is not a file that a store or a backup has")
	case info.Mode.IsDir() && IsMount(fsys, path):
		return refuse("is a mount point")
	case info.Mode.IsDir():
		if depth == 0 {
			return refuse("is nested too deeply")
		}
		names, err := fsys.ReadDir(path)
		if err != nil {
			return err
		}
		slices.SortFunc(names, markLast)
		for _, n := range names {
			if rel != "." {
				n = rel + "/" + n
			}
			if err := removeKnown(fsys, root, n, known, depth-1, remove); err != nil {
				return err
			}
		}
	}
	if !remove {
		return nil
	}
	return fsys.Remove(path)
}
