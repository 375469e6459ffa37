package adopted

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/varve-db/varve/internal/note"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/vfs"
)

// The states of an adopted folder.
const (
	Adopting  = note.Adopting
	Adopted   = note.Adopted
	Releasing = note.Releasing
	Released  = note.Released
)

// Entry is the record of one adopted folder; see package note.
type Entry = note.AdoptedFolder

// Folders is the record of the folders that a store has adopted from elsewhere. At the original path of each folder
// there is now a link to a folder of notes in the store.
type Folders struct {
	dir string // the store's folder; its path contains no link
}

// Of returns the record of adopted folders of the store at the path store.
func Of(store string) (*Folders, error) {
	dir, err := filepath.Abs(store)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	return &Folders{dir}, err
}

// Store returns the folder of the store.
func (f *Folders) Store() string { return f.dir }

// Target returns the path of a folder of notes in the store. The link at the original place of an adopted folder leads
// to this path.
func (f *Folders) Target(folder string) string {
	return filepath.Join(f.dir, record.NoteFolder, filepath.FromSlash(note.System().Path(folder)))
}

// FolderOf returns the name of the folder of notes whose path in the store is target; ok is false if target is
// not the path of a folder of notes.
func (f *Folders) FolderOf(target string) (folder string, ok bool) {
	rel, err := filepath.Rel(filepath.Join(f.dir, record.NoteFolder), target)
	if err != nil || !filepath.IsLocal(rel) || rel == "." {
		return "", false
	}
	return note.System().ID(filepath.ToSlash(rel))
}

// LinkPath returns path with the links in its parent folder resolved.
func LinkPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	return filepath.Join(dir, filepath.Base(path)), err
}

// List returns the folders that are adopted, and those whose adoption or release was begun and not completed:
// the newest entry for each link.
func (f *Folders) List() ([]Entry, error) { return note.AdoptedFolders(vfs.OS(), f.dir) }

// Find returns the entry of the adopted folder at the path link. The bool is false if no such folder is recorded.
func (f *Folders) Find(link string) (Entry, bool, error) {
	list, err := f.List()
	if i := slices.IndexFunc(list, func(e Entry) bool { return e.Link == link }); i >= 0 {
		return list[i], true, nil
	}
	return Entry{}, false, err
}

// Add appends an entry to the record of adopted folders, durably.
func (f *Folders) Add(e Entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	path := filepath.Join(f.dir, filepath.FromSlash(note.AdoptedFile))
	// No link is followed: not by wal, and not by the file.
	switch info, err := vfs.Below(vfs.OS(), f.dir).Stat(path); {
	case err == nil && !info.Mode.IsRegular():
		return &vfs.NotRegularError{Path: path, Mode: info.Mode}
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	// The line break before it ends a line that is not complete.
	if _, err = file.Write(append(append([]byte("\n"), line...), '\n')); err == nil {
		err = file.Sync()
	}
	if cerr := file.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = vfs.OS().SyncDir(filepath.Dir(path))
	}
	return err
}

// Problem returns what is wrong with an adopted folder, with the remedy; "" if nothing is wrong.
func (f *Folders) Problem(e *Entry) string {
	quoted := fmt.Sprintf("%q", e.Link)
	switch e.State {
	case Adopting:
		return fmt.Sprintf("the adoption of %s as notes was interrupted: memctl note adopt %s completes it", quoted, quoted)
	case Releasing:
		return fmt.Sprintf("the release of %s was interrupted: memctl note release %s completes it", quoted, quoted)
	}
	info, err := os.Lstat(e.Link)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("%s, an adopted folder, is missing: memctl note adopt %s creates the link to its notes "+
			"again",
			quoted, quoted)
	case err != nil:
		return fmt.Sprintf("%s, an adopted folder, cannot be examined: %v", quoted, err)
	case info.Mode()&fs.ModeSymlink == 0:
		return fmt.Sprintf("%s was a link to notes/%s and is now %s: files that are written there get no history; "+
			"memctl note adopt %s adopts it again", quoted, e.Folder, vfs.KindOf(info.Mode()), quoted)
	}
	if !f.LeadsTo(e.Link, e.Folder) {
		return fmt.Sprintf("%s was a link to notes/%s of this store and now leads to another place: memctl note "+
			"adopt %s creates the link again", quoted, e.Folder, quoted)
	}
	if info, err := os.Lstat(f.Target(e.Folder)); err != nil || !info.IsDir() {
		return fmt.Sprintf("notes/%s, to which %s is a link, is missing: its notes are not deleted, and the next read or "+
			"watcher restores their files; if the folder had no notes, memctl note adopt %s creates the folder "+
			"again", e.Folder, quoted, quoted)
	}
	return ""
}

// LeadsTo reports whether the file at the path link is a symbolic link to the given folder of notes of this
// store.
func (f *Folders) LeadsTo(link, folder string) bool {
	to, err := os.Readlink(link)
	if err != nil {
		return false
	}
	if !filepath.IsAbs(to) {
		to = filepath.Join(filepath.Dir(link), to)
	}
	if filepath.Clean(to) == f.Target(folder) {
		return true
	}
	real, err := filepath.EvalSymlinks(to)
	return err == nil && real == f.Target(folder)
}
