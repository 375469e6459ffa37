package vfs

import (
	"errors"
	"io/fs"
	"path/filepath"
)

// What is made below a root belongs with the folder that it is made in, so that no user of a store
// locks out another one:
//
//   - root gives it the owner and the group of the folder: one "sudo memctl put" leaves no
//     file of root behind in a user's store.
//   - In a folder that its group may write and whose new files get its group (setgid), the
//     group may write it too, whatever the umask: such a folder says that it is shared, as one of git
//     does with core.sharedRepository.
//   - Bits for others are never followed, nor are those of a group without setgid: a store in a
//     folder of mode 0755 or 0775 is as private as any.
//
// Whatever this changes is made under another name and gets its own when it is as it should be: a
// process that is killed in between leaves nothing that others may not open.
//
// A root itself, and what is above it, is made as the system makes it: root that copies a
// store into the home of another user does not give it away.
//
// Folders are looked at once for each FS. Where nothing is to be done, which is so for a user in a
// store of his own, that is all that it costs.
type manners struct {
	uid, gid     int         // -1: as it is made
	file, folder fs.FileMode // what is added to the mode
}

// sharedFolder are the bits of a folder that its group shares.
const sharedFolder = fs.ModeSetgid | 0o070

// mannersOf is what a process with an effective user and group does in a folder; nil: nothing.
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

// InfoIsShared is IsShared for what is known of a folder.
func InfoIsShared(folder *Info) bool {
	return folder.Mode&fs.ModeSetgid != 0 && folder.Mode&0o070 == 0o070
}

// IsShared reports whether a folder is one that its group shares: see Share.
func IsShared(fsys FS, dir string) bool {
	info, err := fsys.Stat(throughLink(dir))
	return err == nil && info.Mode.IsDir() && InfoIsShared(&info)
}

// Share has a folder, and what is made in it from here on, belong to its group.
// errors.ErrUnsupported where the system has no such groups.
func Share(fsys FS, dir string) error {
	if s, ok := fsys.(interface{ share(dir string) error }); ok {
		return s.share(dir)
	}
	return errors.ErrUnsupported
}

// Alike has a root that was just made belong with another one, as what is made below a root does with
// its folder: as root the owner is that of the other, and it is shared when the other is. What this
// process has not made, or is a link by now, stays as it is.
func Alike(fsys FS, dir, other string) error {
	s, ok := fsys.(interface{ alike(dir, other string) error })
	if !ok {
		return nil
	}
	return s.alike(dir, other)
}

// mannersIn is that of the folder in which name is, nil for nothing to do.
func (b *below) mannersIn(name string) *manners {
	if b.under(name) < 0 {
		return nil
	}
	dir := filepath.Dir(name)
	if m, ok := b.manners.Load(dir); ok {
		return m.(*manners)
	}
	info, err := b.lookAt(dir)
	if err != nil {
		return nil // what is to be made there says so
	}
	m := mannersOf(&info, euid, egid)
	b.manners.Store(dir, m)
	return m
}
