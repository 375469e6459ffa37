package vfs

import (
	"context"
	"errors"
	"time"
)

// Hold opens a handle of root, a root of Below or Only. It returns a file system in which all operations at or below
// that root work in the folder that is there now, wherever the path leads later. So a store whose folder is renamed,
// removed or covered by a mount changes nothing in the folder that has its path then.
//
// The function release closes the handle. After that all these operations fail with fs.ErrClosed, but open files stay
// open. release may be called more than once.
//
// If the system has no such handles (Windows), or fsys is not a file system of the operating system that Below or Only
// has returned, Hold returns fsys itself, and operations use paths.
func Hold(fsys FS, root string) (held FS, release func(), err error) {
	b, ok := fsys.(*below)
	if !ok {
		return fsys, func() {}, nil
	}
	return b.hold(root)
}

// AtPath describes the file or folder to which the path leads now. The result can differ from what a handle of Hold
// shows, because the handle may be of another folder that had this path before. Like Identify, AtPath returns no times.
// ok is false if fsys cannot have handles, so that the path and a handle cannot differ.
func AtPath(fsys FS, name string) (info Info, ok bool, err error) {
	switch fsys.(type) {
	case osFS, *below:
	default:
		return Info{}, false, nil
	}
	info, err = Identify(osFS{}, name)
	return info, true, err
}

// SharedAtPath opens the existing shared page (see Shared) to which the path leads now, in the same way as OpenShared
// does. It ignores the handles of Hold.
func SharedAtPath(name string) (Shared, error) { return openShared(name, false, 0) }

// OpenFolderLock opens a lock on a folder itself: the lock is on the folder's inode, so no lock file is needed. It
// returns errors.ErrUnsupported if folders cannot be locked.
func OpenFolderLock(fsys FS, name string) (FolderLock, error) {
	if l, ok := fsys.(interface {
		openFolderLock(name string) (FolderLock, error)
	}); ok {
		return l.openFolderLock(name)
	}
	return nil, errors.ErrUnsupported
}

// folderPause is the pause between two attempts of WaitFolder.
const folderPause = 5 * time.Millisecond

// WaitFolder waits for a lock on a folder. If ctx ends first, ok is false and err nil.
func WaitFolder(ctx context.Context, l FolderLock, mode Mode) (ok bool, err error) {
	for {
		if ok, err = l.TryLock(mode); ok || err != nil || Sleep(ctx, folderPause) != nil {
			return ok, err
		}
	}
}

// FolderLock is a lock on a folder. The mode of a lock that is held cannot be changed: call Unlock before locking in
// another mode.
type FolderLock interface {
	TryLock(mode Mode) (bool, error)
	Unlock() error
	Close() error
}
