package docfile

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
)

const (
	noteMost = 64 << 20 // maximum size of a note in bytes: it may contain a line of the index

	// Parts of the names of undo files in quarantine/. An older version of this program wrote these files when it
	// repaired a store. No program reads them anymore.
	undoHead = "repair-"
	undoTail = ".undo.jsonl"
)

// IsUndo reports whether name, a name in quarantine/, belongs to an undo file of an older version.
func IsUndo(name string) bool {
	return strings.HasPrefix(name, undoHead) && strings.HasSuffix(name, undoTail)
}

// Piece is one entry of quarantine/: a file, a folder or a link, with its note.
type Piece struct {
	Name string
	Info vfs.Info
	Note *Note // the note about the piece; nil: the note is missing or cannot be read
	Err  error // the reason why the note cannot be read
	Lone bool  // the piece is a note whose file no longer exists
}

// Pieces returns the entries of quarantine/, the oldest first. It omits files of interrupted writes, files that a purge
// will overwrite, and entries that are removed meanwhile.
func (q *Quarantine) Pieces() ([]Piece, error) {
	names, err := q.names()
	if err != nil {
		return nil, err
	}
	list := make([]Piece, 0, len(names))
	for _, name := range names {
		if isNote(name, names) {
			continue
		}
		p, err := q.Piece(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b Piece) int {
		return cmp.Or(a.When().Compare(b.When()), strings.Compare(a.Name, b.Name))
	})
	return list, nil
}

// Count returns the number of entries in quarantine/, and the number of entries that have a note. It does not count
// undo files.
func (q *Quarantine) Count() (n, noted int, err error) {
	names, err := q.names()
	for _, name := range names {
		switch {
		case isNote(name, names):
			noted++
		case !IsUndo(name):
			n++
		}
	}
	return n, noted, err
}

// checkPiece returns nil if name is a single element of a path, and an error otherwise. It accepts names that the store
// would not give, because another program may have put the file into quarantine/.
func checkPiece(name string) error { return checkElement(name, "/\x00"+string(filepath.Separator)) }

// names returns the sorted names in the folder. It omits files of unfinished writes and files that a purge will
// overwrite (isUnfinished). It returns no names if the folder is missing.
func (q *Quarantine) names() ([]string, error) {
	dir := q.l.path(quarantineFolder)
	switch err := q.l.checkFolder(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	names, err := q.l.FS.ReadDir(dir)
	if err != nil {
		return nil, failure("list", quarantineFolder, err)
	}
	names = slices.DeleteFunc(vfs.WithoutLost(q.l.FS, dir, names), func(name string) bool {
		return isUnfinished(name)
	})
	slices.Sort(names)
	return names, nil
}

// Piece returns the entry of quarantine/ with the given name. If no entry has that name, the error is fs.ErrNotExist.
func (q *Quarantine) Piece(name string) (Piece, error) {
	p := Piece{Name: name}
	if err := checkPiece(name); err != nil {
		return p, err
	}
	if err := q.l.checkFolder(q.l.path(quarantineFolder)); err != nil {
		return p, err
	}
	var err error
	path := q.l.path(quarantineFolder, name)
	if p.Info, err = q.l.FS.Stat(path); err != nil {
		return p, failure("examine", q.l.rel(path), err)
	}
	note := path + noteSuffix
	if _, err := q.l.FS.Stat(note); errors.Is(err, fs.ErrNotExist) {
		if note, p.Lone = path, strings.HasSuffix(name, noteSuffix); !p.Lone {
			return p, nil
		}
	}
	b, err := vfs.ReadText(q.l.FS, note, noteMost)
	var n Note
	if err == nil {
		err = json.Unmarshal(b, &n)
	}
	if err == nil && n.Why == "" && n.From == "" {
		err = errs.ErrInvalid
	}
	if err != nil {
		p.Lone = false // perhaps a document whose id has this ending
		if note != path {
			p.Err = failure("read", q.l.rel(note), err)
		}
		return p, nil
	}
	p.Note = &n
	return p, nil
}

// Open opens the entry of quarantine/ with this name for reading. The entry must be a regular file.
func (q *Quarantine) Open(name string) (vfs.File, error) {
	if err := checkPiece(name); err != nil {
		return nil, err
	}
	path := q.l.path(quarantineFolder, name)
	f, err := q.l.FS.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, failure("open", q.l.rel(path), err)
	}
	return f, nil
}

// Drop removes entries and their notes, durably, and returns the names of the removed entries. It removes a folder with
// everything in it, and follows no links. The function missing returns the error for a name that does not exist. Only
// the holder of flush.lock may call Drop: a round of writing files may rely on an edit that is already in quarantine.
func (q *Quarantine) Drop(ctx context.Context, names []string, missing func(name string) error) ([]string, error) {
	var dropped []string
	var fails []error
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			fails = append(fails, err)
			break
		}
		err := q.drop(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			fails = append(fails, missing(name))
		case err != nil:
			fails = append(fails, err)
		default:
			dropped = append(dropped, name)
		}
	}
	if len(dropped) > 0 {
		fails = append(fails, q.sync())
	}
	return dropped, errors.Join(fails...)
}

func (q *Quarantine) drop(name string) error {
	if err := checkPiece(name); err != nil {
		return err
	}
	if err := q.l.checkFolder(q.l.path(quarantineFolder)); err != nil {
		return err
	}
	path := q.l.path(quarantineFolder, name)
	if err := q.removeAll(path); err != nil {
		return failure("remove", q.l.rel(path), err)
	}
	// The note is removed last, so that an interrupted removal leaves the note, which says why the file was
	// there.
	for _, suffix := range []string{noteSuffix, noteSuffix + partSuffix} {
		info, err := q.l.FS.Stat(path + suffix)
		if err == nil && info.Mode.IsRegular() { // a note is nothing else
			err = q.l.FS.Remove(path + suffix)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return failure("remove", q.l.rel(path+suffix), err)
		}
	}
	return nil
}

// removeAll removes a file, or a folder with everything in it.
func (q *Quarantine) removeAll(path string) error {
	info, err := q.l.FS.Stat(path)
	if err != nil {
		return err
	}
	if info.Mode.IsDir() {
		names, err := q.l.FS.ReadDir(path)
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := q.removeAll(filepath.Join(path, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return q.l.FS.Remove(path)
}

// When returns the time at which an entry was moved to quarantine: the time in its note, or, if it has no note, its
// modification time.
func (p *Piece) When() time.Time {
	if p.Note != nil && !p.Note.When.IsZero() {
		return p.Note.When
	}
	return p.Info.Mtime
}
