package locate

import (
	"path/filepath"
	"slices"

	"github.com/varve-db/varve/internal/vfs"
)

// Users are the ids of the users whose stores are treated as the user's own; empty on a system
// without such ids.
type Users vfs.Users

// Self returns the user of this process, and for root under sudo also the user who called sudo.
func Self(getenv func(string) string) Users { return Users(vfs.Self(getenv)) }

// Own reports whether a folder belongs to one of these users, or its owner is unknown.
func (u Users) Own(dir string) bool { return u.foreign(dir) == nil }

// Passed is a store that was found and is not used unless the user names it.
type Passed struct {
	Path  string
	Owner int    // the owner, if the store belongs to another user
	Link  string // the target of the path, if it is a link
}

// foreign returns a Passed with the owner if the store in a folder belongs to another user, and nil otherwise.
// It checks the owner of the folder, and of a link that leads to it. If other users can create files in the
// folder, it also checks the owner of each file that makes the folder a store. In a folder that a group shares
// (Options.Shared) it checks only the owner of the log, since members of the group replace the other files
// there.
func (u Users) foreign(dir string) *Passed {
	if len(u) == 0 {
		return nil
	}
	names := []string{dir, dir + string(filepath.Separator) + "."} // for a link: the link itself, and its target
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
