package vfs

import (
	"io/fs"
	"path/filepath"
)

// Package os has no calls relative to a folder for all of these operations on Windows, so each folder on the path is
// checked first.

// enterBoth calls enter for each of two names. If both names are in the same folder, it calls enter only once.
func (b *below) enterBoth(one, two string) error {
	if err := b.enter(one); err != nil {
		return err
	}
	if filepath.Dir(one) == filepath.Dir(two) {
		return nil
	}
	return b.enter(two)
}

func (b *below) mkdir(name string, perm fs.FileMode) error {
	if err := b.enter(name); err != nil {
		return err
	}
	return b.osFS.Mkdir(name, perm)
}

func (b *below) remove(name string) error {
	if err := b.enter(name); err != nil {
		return err
	}
	return b.osFS.Remove(name)
}

func (b *below) rename(old, new string) error {
	if err := b.enterBoth(old, new); err != nil {
		return err
	}
	return b.osFS.Rename(old, new)
}

func (b *below) renameNew(old, new string) error {
	if err := b.enterBoth(old, new); err != nil {
		return err
	}
	return b.osFS.RenameNew(old, new)
}

func (b *below) exchange(one, two string) error {
	if err := b.enterBoth(one, two); err != nil {
		return err
	}
	return b.osFS.Exchange(one, two)
}

func (b *below) link(old, new string) error {
	if err := b.enterBoth(old, new); err != nil {
		return err
	}
	return b.osFS.Link(old, new)
}

func (b *below) stat(name string) (Info, error) {
	if err := b.enter(name); err != nil {
		return Info{}, err
	}
	return lstat(name)
}

func (b *below) syncDir(name string) error { return b.osFS.SyncDir(name) }
