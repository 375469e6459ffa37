package vfs

import (
	"errors"
	"io/fs"
	"path/filepath"
)

// manners has the owner, group and mode bits for new files and folders in a folder below a root. They follow from the
// owner, group and mode of that folder, so that no user of a store locks out another one:
//
//   - If a process runs as root, new files get the owner and group of the folder: "sudo memctl put" leaves no file
//     of root in a user's store.
//   - In a folder that is setgid and writable by its group, the group may also write the new files, whatever the
//     umask is: such a folder is meant to be shared, as with core.sharedRepository of git.
//   - Permission bits for others are never copied, nor those of a group without setgid: a store in a folder of mode
//     0755 or 0775 is as private as any.
//
// A file or folder that needs another owner or mode is created under a temporary name, and renamed when its owner and
// mode are set. So a process that is killed in between leaves nothing under the real name that other users cannot
// open.
//
// A root itself, and the folders above it, are created with the system's defaults: when the user root copies a store
// into the home of another user, root keeps the ownership.
//
// Folders are inspected once per FS. If nothing is to be set, as for a user in a store of their own, that is the only
// cost.
type manners struct {
	uid, gid     int         // owner and group to set; -1: unchanged
	file, folder fs.FileMode // bits to add to the mode of a file, and of a folder
}

// sharedFolder are the mode bits of a folder that its group may write.
const sharedFolder = fs.ModeSetgid | 0o070

// mannersOf returns the owner, group and mode bits for what a process with the user id euid and the group id egid
// creates in a folder. It returns nil if nothing has to be set.
func mannersOf(folder *Info, euid, egid int) *manners {
	m := &manners{uid: -1, gid: -1}
	if euid == 0 && (folder.UID != 0 || int(folder.GID) != egid) {
		m.uid, m.gid = int(folder.UID), int(folder.GID)
	}
	if InfoIsShared(folder) {
		m.file, m.folder = 0o060, sharedFolder
	}
	if m.uid < 0 && m.file == 0 {
		return nil
	}
	return m
}

// InfoIsShared reports whether the folder that an Info describes is shared by its group; see IsShared.
func InfoIsShared(folder *Info) bool {
	return folder.Mode&fs.ModeSetgid != 0 && folder.Mode&0o070 == 0o070
}

// IsShared reports whether the group of a folder may write in the folder and in what is created there: see Share.
func IsShared(fsys FS, dir string) bool {
	info, err := fsys.Stat(throughLink(dir))
	return err == nil && info.Mode.IsDir() && InfoIsShared(&info)
}

// Share gives the group of a folder permission to write, and makes the group own what is created in the folder. It
// returns errors.ErrUnsupported if the system has no such groups.
func Share(fsys FS, dir string) error {
	if s, ok := fsys.(interface{ share(dir string) error }); ok {
		return s.share(dir)
	}
	return errors.ErrUnsupported
}

// Alike gives the folder dir the owner and the group access of the folder other. dir must be a folder that this process
// has just created, as the top folder of a store or a backup. If the process runs as the user root, dir gets the owner
// and the group of other. If the group of other may write in other (see IsShared), dir gets the same group, and the
// group may write in dir. If dir belongs to another user than the user of this process, or is a link, another process
// has replaced dir: Alike then changes nothing and returns nil.
func Alike(fsys FS, dir, other string) error {
	s, ok := fsys.(interface{ alike(dir, other string) error })
	if !ok {
		return nil
	}
	return s.alike(dir, other)
}

// mannersIn returns the manners for the folder that contains name, or nil if nothing has to be set.
func (b *below) mannersIn(name string) *manners {
	if b.offsetBelowRoot(name) < 0 {
		return nil
	}
	dir := filepath.Dir(name)
	if m, ok := b.manners.Load(dir); ok {
		return m.(*manners)
	}
	info, err := b.lookAt(dir)
	if err != nil {
		return nil // creating the file will return the error
	}
	m := mannersOf(&info, euid, egid)
	b.manners.Store(dir, m)
	return m
}
