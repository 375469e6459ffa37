package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/varve-db/varve/errs"
)

// Users are the ids whose files are this user's own; empty on systems without such ids.
type Users []int

// Self returns the user of this process and, for root under sudo, also the user who called sudo.
func Self(getenv func(string) string) Users {
	you := os.Geteuid()
	if you < 0 {
		return nil
	}
	self := Users{you}
	if you == 0 {
		if caller, err := strconv.ParseUint(getenv("SUDO_UID"), 10, 32); err == nil {
			self = append(self, int(caller))
		}
	}
	return self
}

// SelfOn is like Self, for a file system of the operating system; a simulated file system has no users.
func SelfOn(fsys FS, getenv func(string) string) Users {
	if _, ok := fsys.(osFS); !ok {
		return nil
	}
	return Self(getenv)
}

// Own reports whether a file or folder belongs to one of u.
func (u Users) Own(info *Info) bool { return len(u) == 0 || slices.Contains(u, int(info.UID)) }

// Trusted reports whether a folder belongs to one of u or to root, so that no other user can have created it or chosen
// its mode and group.
func (u Users) Trusted(info *Info) bool { return info.UID == 0 || u.Own(info) }

// MayFollow reports whether a copy of the folder source may be made in the folder dir with the owner and group of dir
// (Alike). It may if dir is one of u's own, or if the copy is readable to no user and no group that cannot read source
// already. Otherwise another user may have set the attributes of dir to be able to read the copy.
func (u Users) MayFollow(fsys FS, dir, source string) bool {
	to, err := fsys.Stat(throughLink(dir))
	if err != nil {
		return false
	}
	if u.Own(&to) {
		return true
	}
	from, err := fsys.Stat(throughLink(source))
	if err != nil {
		return false
	}
	if InfoIsShared(&to) {
		return InfoIsShared(&from) && to.GID == from.GID
	}
	return to.UID == from.UID
}

// Admit returns why nothing new may be created in an existing folder, or nil: it belongs to another user, who chose its
// mode and group and may read and change what is in it, or it belongs to root and is open to a group that this user did
// not name (shared means that the user did).
func (u Users) Admit(path string, info *Info, shared bool) error {
	e := &errs.PermissionError{Path: path, Mode: info.Mode, Owner: info.UID, You: euid, Err: fs.ErrPermission}
	switch {
	case !u.Trusted(info):
		e.Why = "belongs to another user, who could read and change what is made in it"
		e.Fix = "name a folder of your own, or one that does not exist yet"
	case !u.Own(info) && InfoIsShared(info) && !shared:
		e.Why = fmt.Sprintf("is open to group %d, and a new store is its user's alone", info.GID)
		e.Fix = "name another folder, or share the store with the group: memctl init --shared=group DIR"
	default:
		return nil
	}
	return e
}

// MakeRoot creates a folder and its missing parents for a new store. made is false if the folder existed: then Admit
// must accept it.
func MakeRoot(fsys FS, dir string, perm fs.FileMode, self Users, shared bool) (made bool, err error) {
	info, err := fsys.Stat(throughLink(dir))
	if errors.Is(err, fs.ErrNotExist) {
		if err := MkdirAll(fsys, filepath.Dir(filepath.Clean(dir)), perm); err != nil {
			return false, err
		}
		if err = fsys.Mkdir(dir, perm); err == nil {
			return true, fsys.SyncDir(filepath.Dir(filepath.Clean(dir)))
		}
		if !errors.Is(err, fs.ErrExist) {
			return false, err
		}
		info, err = fsys.Stat(throughLink(dir)) // another process was faster, or it is a link
	}
	if err != nil {
		return false, err
	}
	return false, self.Admit(dir, &info, shared)
}
