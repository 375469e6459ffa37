package memorystores

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/settings"
	"github.com/varve-db/varve/internal/vfs"
)

const (
	// newKind marks a folder in which a store is being created: it is the field Kind in the folder's mark (vfs.Mark).
	newKind = "memory store"
	// leftAfter is the age above which a folder with the mark newKind counts as a leftover of a process that was
	// killed.
	leftAfter = time.Hour
	// oldFor is the time for which this process must have found a store or folder old before it removes it. This time
	// is measured by a clock that cannot be set, so nothing is removed because the system clock was ahead for a while.
	oldFor = time.Hour
)

// emptyTrash removes stores that have been in the trash for longer than Options.Trash, and folders that an interrupted
// creation has left. A name alone is never a reason to remove something: a folder in the trash must be a memory store,
// and a folder of a creation must have the mark of the process that created it.
func (s *Stores) emptyTrash(ctx context.Context) {
	files, now, trash := s.files(), s.o.Clock(), filepath.Join(s.dir, trashName)
	seen := map[string]time.Time{}
	list, _ := files.ReadDir(trash) // it may not exist
	for _, name := range list {
		at, err := time.Parse(trashTime, name[max(0, len(name)-len(trashTime)):])
		if err != nil || s.o.Trash < 0 || now.Sub(at) < s.o.Trash || !s.deleted(files, filepath.Join(trash, name)) {
			continue
		}
		if name = trashName + "/" + name; !s.oldLong(name, seen) || ctx.Err() != nil {
			continue
		}
		if err := vfs.RemoveKnown(files, filepath.Join(s.dir, filepath.FromSlash(name)), ofStore); err != nil {
			s.o.Logger.Warn("a deleted store cannot be removed", "folder", name, "err", err)
		} else {
			s.o.Logger.Info("a deleted store was removed", "folder", name)
		}
	}
	list, _ = files.ReadDir(s.dir)
	for _, name := range list {
		id, ok := strings.CutPrefix(name, newName)
		path := filepath.Join(s.dir, name)
		if !ok || !s.left(files, path, now) || !s.oldLong(name, seen) || ctx.Err() != nil {
			continue
		}
		if err := vfs.RemoveKnown(files, path, ofCreation(id)); err != nil {
			s.o.Logger.Warn("the incomplete store that a killed process has left cannot be removed", "folder", name,
				"err", err)
		}
	}
	s.seenOld = seen
}

// oldLong reports whether this process has found a store or folder old for at least oldFor. It records in seen the
// time at which this process first found the store or folder old.
func (s *Stores) oldLong(name string, seen map[string]time.Time) bool {
	now := s.uptime()
	first, ok := s.seenOld[name]
	if !ok {
		first = now
	}
	seen[name] = first
	return now.Sub(first) >= oldFor
}

// deleted reports whether a folder in the trash is a memory store.
func (s *Stores) deleted(files vfs.FS, path string) bool {
	info, err := files.Stat(path)
	if err != nil || !info.Mode.IsDir() {
		return false
	}
	described, _, _ := settings.Read(files, path)
	return described != nil && described.MemoryStore != nil
}

// left reports whether the folder at path is the leftover of a creation: a process began to create a store in it and
// was killed before it finished.
func (s *Stores) left(files vfs.FS, path string, now time.Time) bool {
	info, err := files.Stat(path)
	if err != nil || !info.Mode.IsDir() || now.Sub(info.Mtime) < leftAfter {
		return false
	}
	m, ok := vfs.Unfinished(files, path)
	return ok && m.Kind == newKind
}

// ofStore reports whether a file or folder with the name rel may belong to a store. rel is relative to the store. In
// the folders of a store in which users choose the names, every name may belong to the store.
func ofStore(rel string, folder bool) bool {
	switch top, _, in := strings.Cut(rel, "/"); {
	case rel == ".":
		return folder
	case in && (top == record.NoteFolder || top == "quarantine" || top == index.BackupsDir || top == "tmp"):
		return true
	}
	return places.IsName(rel, folder)
}

// ofCreation returns a function like ofStore, for the folder in which the store with this id is created: it reports
// whether a file or folder may belong to that folder.
func ofCreation(id string) func(rel string, folder bool) bool {
	return func(rel string, folder bool) bool {
		switch rel {
		case ".", id:
			return folder
		case vfs.MarkName:
			return !folder
		}
		below, ok := strings.CutPrefix(rel, id+"/")
		return ok && ofStore(below, folder)
	}
}
