package locate

import (
	"path/filepath"
	"slices"

	"github.com/varve-db/varve/internal/vfs"
)

// Users are the ids whose stores are one's own; none where a system has no such ids.
type Users vfs.Users

// Self is the user of this process, and for root under sudo also the user who called it.
func Self(getenv func(string) string) Users { return Users(vfs.Self(getenv)) }

// Own reports whether a folder is not known to be another user's.
func (u Users) Own(dir string) bool { return u.foreign(dir) == nil }

// Passed is a store that is used only where it is named.
type Passed struct {
	Path  string
	Owner int    // the user whose it is, where that is another one
	Link  string // where its path leads, being a link
}

// foreign says whom a store belongs to if that is another user, and nil if it is one's own. The
// folder counts, and a link that leads to it. Where others can make files in the folder it also
// counts who made each of those that make it a store; in one that a group shares (Options.Shared) the
// log alone, since members replace the others there.
func (u Users) foreign(dir string) *Passed {
	if len(u) == 0 {
		return nil
	}
	names := []string{dir, dir + string(filepath.Separator) + "."} // of a link: itself, and where it leads
	if info, err := vfs.OS().Stat(names[1]); err == nil && info.Mode&0o022 != 0 {
		names = append(names, filepath.Join(dir, "wal"))
		if info.Mode&0o002 != 0 || !vfs.InfoIsShared(&info) {
			for _, name := range []string{configName, movedName, "checkpoint", "memories"} {
				names = append(names, filepath.Join(dir, name))
			}
		}
	}
	for _, name := range names {
		if info, err := vfs.OS().Stat(name); err == nil && !slices.Contains(u, int(info.UID)) {
			return &Passed{Path: dir, Owner: int(info.UID)}
		}
	}
	return nil
}
