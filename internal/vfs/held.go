package vfs

import (
	"context"
	"errors"
	"time"
)

// Hold opens a handle of a root of Below or Only, and returns the file system in which every operation at
// or below that root is one in the folder that was there at this moment, wherever the path leads later:
// a store whose folder is renamed, removed or covered by a mount changes nothing in what has its path by
// then. release closes the handle, after which all these operations fail with fs.ErrClosed; it may be
// called more than once. What is open stays open.
//
// Where the system has no such handles (Windows), or fsys is no file system of the operating system, fsys
// itself is returned, and operations go by path.
func Hold(fsys FS, root string) (held FS, release func(), err error) {
	b, ok := fsys.(*below)
	if !ok {
		return fsys, func() {}, nil
	}
	return b.hold(root)
}

// AtPath is Stat by the path as it leads now, past every handle of Hold; ok is false where fsys cannot
// tell the two apart.
func AtPath(fsys FS, name string) (info Info, ok bool, err error) {
	switch fsys.(type) {
	case osFS, *below:
	default:
		return Info{}, false, nil
	}
	info, err = lstat(name)
	return info, true, err
}

// SharedAtPath is OpenShared of an existing page by the path as it leads now.
func SharedAtPath(name string) (Shared, error) { return openShared(name, false, 0) }

// OpenFolderLock opens a lock on a folder itself, which needs no file in it: a lock on its inode.
// errors.ErrUnsupported where folders cannot be locked.
func OpenFolderLock(fsys FS, name string) (FolderLock, error) {
	if l, ok := fsys.(interface {
		openFolderLock(name string) (FolderLock, error)
	}); ok {
		return l.openFolderLock(name)
	}
	return nil, errors.ErrUnsupported
}

// folderPause is how long WaitFolder waits between two tries.
const folderPause = 5 * time.Millisecond

// WaitFolder waits until a lock on a folder is had, or until ctx ends: then ok is false, without an error.
func WaitFolder(ctx context.Context, l FolderLock, mode Mode) (ok bool, err error) {
	for {
		if ok, err = l.TryLock(mode); ok || err != nil || Sleep(ctx, folderPause) != nil {
			return ok, err
		}
	}
}

// FolderLock is a lock on a folder. It is not converted: Unlock comes before another mode.
type FolderLock interface {
	TryLock(mode Mode) (bool, error)
	Unlock() error
	Close() error
}
