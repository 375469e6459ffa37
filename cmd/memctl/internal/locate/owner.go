package locate

import (
	"github.com/varve-db/varve/internal/vfs"
)

// Users are the ids of the users whose stores memctl treats as the user's own. Users is empty on a system without such
// ids.
type Users vfs.Users

// Self returns the user of this process, and for root under sudo also the user who called sudo.
func Self(getenv func(string) string) Users { return Users(vfs.Self(getenv)) }

// Own reports whether a folder belongs to one of these users, or the owner of the folder is unknown.
func (u Users) Own(dir string) bool { return u.foreign(dir) == nil }

// Passed describes a store that was found, but that memctl uses only if the user names it.
type Passed struct {
	Path  string
	Owner int    // the owner, if the store belongs to another user
	Link  string // the target of the path, if it is a link
}

// foreign returns a Passed that names the owner of dir if u does not contain the owner. Otherwise it returns nil.
func (u Users) foreign(dir string) *Passed {
	if owner, ok := vfs.Users(u).Stranger(vfs.OS(), dir); ok {
		return &Passed{Path: dir, Owner: owner}
	}
	return nil
}
