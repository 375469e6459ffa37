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

// MarkName is the file by which a folder is known that a process makes and has not finished.
const MarkName = "varve-unfinished.json"

// markMost is how much of a mark is read.
const markMost = 64 << 10

// Mark is the content of MarkName. The process that makes the folder writes it before anything else,
// durably, and removes it when the folder is finished. A folder is never taken for a leftover by its
// name: it has a mark that names the folder itself, and the lock of its maker is free.
type Mark struct {
	Format int       `json:"varve_unfinished"` // MarkFormat
	Name   string    `json:"name"`             // of the folder: a mark in a folder of another name counts for nothing
	Kind   string    `json:"kind"`             // what is made: backup, restore, view
	Store  uuid.UUID `json:"store"`            // the store that it is made from
}

// MarkFormat is the version of marks.
const MarkFormat = 1

// WriteMark marks a folder that this process has just made.
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

// ReadMark returns the mark of a folder; false if the folder has none of this format.
func ReadMark(fsys FS, dir string) (m Mark, ok bool) {
	b, err := ReadFile(fsys, filepath.Join(dir, MarkName), markMost)
	ok = err == nil && json.Unmarshal(b, &m) == nil && m.Format == MarkFormat
	return m, ok
}

// Unfinished returns the mark of a folder that was never finished; false for any other. A folder that was killed
// when it had just got its name has the mark of another name.
func Unfinished(fsys FS, dir string) (m Mark, ok bool) {
	m, ok = ReadMark(fsys, dir)
	return m, ok && m.Name == filepath.Base(dir)
}

// IsMount reports whether a folder is where a file system, or another folder, is mounted.
func IsMount(fsys FS, name string) bool {
	if isMount(name) {
		return true
	}
	info, err := fsys.Stat(name)
	up, uerr := fsys.Stat(filepath.Dir(name) + "/.")
	return err == nil && uerr == nil && info.Dev != up.Dev
}

// NotOursError refuses to remove a folder because of a file in it that Varve has not made. It matches
// errs.ErrInvalid.
type NotOursError struct {
	Path   string // the file
	Folder string // what was to be removed
	Why    string
}

func (e *NotOursError) Error() string {
	const what = "%s %s, so %s was not removed: move away what is yours in it, then remove it"
	return fmt.Sprintf(what, e.Path, e.Why, e.Folder)
}

func (e *NotOursError) Unwrap() error { return errs.ErrInvalid }

// RemoveKnown removes a file, or a folder with all that is in it, if known approves every name in it: a
// path relative to name, with slashes, "." for name itself. It enters no link and no mount, and
// removes regular files and folders only. Everything is looked at before the first file is removed; a
// name that is not approved is a *NotOursError, and then everything stays.
func RemoveKnown(fsys FS, name string, known func(rel string, folder bool) bool) error {
	for _, remove := range []bool{false, true} {
		if err := removeKnown(fsys, name, ".", known, Deepest, remove); err != nil {
			return err
		}
	}
	return nil
}

// markLast is the order in which a folder is emptied: as long as something is in it, it has its mark.
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

// Deepest is how many folders in each other are looked into. The limit on the path of a document (docfile.MostDepth)
// leaves room for the folders that a copy of a store is in.
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
			return refuse("lies too deep")
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
