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

// Users are the ids of the users whose files count as the own files of this user. On systems without such ids, Users is
// empty.
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

// SelfOn does the same as Self for a file system of the operating system; a simulated file system has no users.
func SelfOn(fsys FS, getenv func(string) string) Users {
	if _, ok := fsys.(osFS); !ok {
		return nil
	}
	return Self(getenv)
}

// Own reports whether a file or folder belongs to one of the users in u. It returns true if u is empty.
func (u Users) Own(info *Info) bool { return len(u) == 0 || slices.Contains(u, int(info.UID)) }

// Trusted reports whether a folder belongs to one of the users in u or to root. If so, no other user can have created
// the folder or chosen its mode and group.
func (u Users) Trusted(info *Info) bool { return info.UID == 0 || u.Own(info) }

// Stranger returns the owner of the store in a folder if that user is not one of u; found reports whether this is
// so. It checks the owner of the folder, and of a link that leads to the folder. If other users can create files
// in the folder, Stranger also checks the owner of each file that makes the folder a store. In a folder that a
// group shares (Options.Shared) it checks only the owner of the log, since members of the group replace the other
// files there. If u is empty, found is false.
func (u Users) Stranger(fsys FS, dir string) (owner int, found bool) {
	if len(u) == 0 {
		return 0, false
	}
	names := []string{dir, throughLink(dir)} // for a link: the link itself, and its target
	if info, err := fsys.Stat(names[1]); err == nil && info.Mode&0o022 != 0 {
		names = append(names, filepath.Join(dir, "wal"))
		if info.Mode&0o002 != 0 || !InfoIsShared(&info) {
			for _, name := range []string{"config.json", "moved.json", "checkpoint", "memories"} {
				names = append(names, filepath.Join(dir, name))
			}
		}
	}
	for _, name := range names {
		if info, err := fsys.Stat(name); err == nil && !slices.Contains(u, int(info.UID)) {
			return int(info.UID), true
		}
	}
	return 0, false
}

// MayFollow reports whether a copy of the folder source may be made in the folder dir with the owner and group of dir
// (see Alike). This is allowed if dir belongs to one of the users in u. It is also allowed if every user and group
// that could read the copy can read source already. Otherwise another user may have prepared dir in order to read the
// copy.
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

// Admit returns nil if a new file or folder may be created in the existing folder path, and otherwise an error with
// the reason. Nothing may be created in a folder of another user, because that user chose the folder's mode and group,
// and may read and change what is created there. Nothing may be created either in a folder of root that is open to a
// group, unless shared is true: then this user has named the group.
func (u Users) Admit(path string, info *Info, shared bool) error {
	e := &errs.PermissionError{Path: path, Mode: info.Mode, Owner: info.UID, You: euid, Err: fs.ErrPermission}
	switch {
	case !u.Trusted(info):
		e.Why = "belongs to another user, who could read and change everything created in it"
		e.Fix = "name a folder of your own, or one that does not exist yet"
	case !u.Own(info) && InfoIsShared(info) && !shared:
		e.Why = fmt.Sprintf("is open to group %d, but a new store is accessible only to its user", info.GID)
		e.Fix = "name another folder, or share the store with the group: memctl init --shared=group DIR"
	default:
		return nil
	}
	return e
}

// MakeRoot creates a folder and its missing parents for a new store. created is false if the folder existed
// already; in this case the error is the result of self.Admit, which decides whether the folder may be used.
func MakeRoot(fsys FS, dir string, perm fs.FileMode, self Users, shared bool) (created bool, err error) {
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
