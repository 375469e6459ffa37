package docfile

import (
	"errors"
	"io/fs"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"github.com/varve-db/varve/internal/jsondoc"
	"github.com/varve-db/varve/internal/vfs"
)

// Kind is what an entry of a folder is.
type Kind int

// The kinds of entries. Only a Document can be one of ours; the others are
// reported so that nothing is overlooked, and are never followed or opened.
const (
	Document Kind = iota // a plain file whose name ends in ".json"
	Leftover             // a plain file that editors and tools leave behind while they save
	Foreign              // any other plain file
	Subfolder
	Symlink
	Special // a pipe, a socket, a device
)

// Entry is one name in a folder.
type Entry struct {
	Name string
	Kind Kind
	Info vfs.Info
}

// Scan yields what is in the folder, by name. What vanishes meanwhile is left
// out; an entry that cannot be looked at yields its error and the rest goes on.
// A missing or unreadable folder is an error, never an empty one.
func (f *Folder) Scan() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		names, err := f.Names()
		if err != nil {
			yield(Entry{}, err)
			return
		}
		for _, name := range names {
			info, err := f.l.FS.Stat(f.Path(name))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			e := Entry{Name: name, Info: info}
			if err != nil {
				err = failure("look at", f.rel(name), err)
			} else {
				e.Kind = entryKind(name, info.Mode)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// Names returns all names in the folder, sorted, without looking at what they are.
func (f *Folder) Names() ([]string, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	names, err := f.l.FS.ReadDir(filepath.Clean(f.dir))
	if err != nil {
		return nil, failure("list", f.name, err)
	}
	slices.Sort(names)
	return names, nil
}

func entryKind(name string, mode fs.FileMode) Kind {
	switch {
	case mode&fs.ModeSymlink != 0:
		return Symlink
	case mode.IsDir():
		return Subfolder
	case !mode.IsRegular():
		return Special
	case isLeftover(name):
		return Leftover
	case strings.HasSuffix(name, jsondoc.Extension):
		return Document
	}
	return Foreign
}

// isLeftover knows the names of vim (.x.swp, x~, 4913), emacs (#x#, .#x) and of
// tools that write a temp file beside the target.
func isLeftover(name string) bool {
	if name == "4913" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "#") || strings.HasSuffix(name, "~") {
		return true
	}
	switch strings.ToLower(filepath.Ext(name)) {
	case ".tmp", ".swp", ".swo", ".swx", ".bak", ".orig", ".rej", ".part":
		return true
	}
	return false
}
