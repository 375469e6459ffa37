package vfs

import "io/fs"

// euid and egid stand for no user and no group: on Windows files and folders inherit the access list of their folder,
// so no owner or mode is set.
const euid, egid = -1, -1

func (b *below) create(name string, flag int, perm fs.FileMode) (int, error) {
	return b.openFD(name, flag, perm)
}

func (b *below) makeFolder(name string, perm fs.FileMode) error { return b.mkdir(name, perm) }

func (b *below) lookAt(dir string) (Info, error) { return lstat(dir) }
