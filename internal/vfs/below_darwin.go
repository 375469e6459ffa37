package vfs

import "io/fs"

// openFD opens what is below a root once each folder in between was looked at.
func (b *below) openFD(name string, flag int, perm fs.FileMode) (int, error) {
	if err := b.enter(name); err != nil {
		return -1, err
	}
	return openFD(name, flag, perm)
}
