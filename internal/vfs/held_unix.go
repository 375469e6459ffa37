//go:build linux || darwin

package vfs

import (
	"io/fs"
	"slices"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// heldFolder is a descriptor of a folder. users counts the operations in progress, plus one for the handle itself. The
// descriptor is closed when users reaches 0, so that no operation works in another folder that gets the number of the
// descriptor afterwards.
type heldFolder struct {
	fd    int
	users atomic.Int64
	freed atomic.Bool
}

func (h *heldFolder) enter() error {
	for {
		n := h.users.Load()
		if n <= 0 {
			return fs.ErrClosed
		}
		if h.users.CompareAndSwap(n, n+1) {
			return nil
		}
	}
}

func (h *heldFolder) leave() {
	if h.users.Add(-1) == 0 {
		_ = unix.Close(h.fd)
	}
}

func (h *heldFolder) release() {
	if h.freed.CompareAndSwap(false, true) {
		h.leave()
	}
}

func (h *heldFolder) open(rest string, flag int, perm fs.FileMode) (fd int, err error) {
	if err := h.enter(); err != nil {
		return -1, err
	}
	defer h.leave()
	return openFrom(h.fd, rest, flag, perm)
}

// stat describes the file at the path rest below the folder. If the last element of the path is a link, stat describes
// the link itself. The caller must check the folders on the path.
func (h *heldFolder) stat(rest string) (Info, error) {
	if err := h.enter(); err != nil {
		return Info{}, err
	}
	defer h.leave()
	var st unix.Stat_t
	err := retry(func() error {
		if rest == "." {
			return unix.Fstat(h.fd, &st)
		}
		return unix.Fstatat(h.fd, rest, &st, unix.AT_SYMLINK_NOFOLLOW)
	})
	return info(&st), err
}

func (b *below) hold(root string) (FS, func(), error) {
	at := slices.IndexFunc(b.roots, func(p place) bool { return p.root == root && !p.literal })
	if at < 0 {
		return b, func() {}, nil
	}
	h := &heldFolder{}
	err := retry(func() (err error) {
		h.fd, err = unix.Open(throughLink(root), onlyFolder|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, nil, pathError("open", root, err)
	}
	h.users.Store(1)
	held := &below{roots: slices.Clone(b.roots), only: b.only, patience: b.patience}
	held.roots[at].held = h
	held.init()
	return held, h.release, nil
}

// lstat calls the system's lstat, through the handle of the root if there is one.
func (b *below) lstat(name string) (Info, error) {
	h, rest := b.anchor(name)
	if h == nil {
		return lstat(name)
	}
	info, err := h.stat(rest)
	if err != nil {
		return Info{}, pathError("lstat", name, err)
	}
	return info, nil
}

// strays reports whether a file name leads to different files by path and by the handle of the store's folder. That is
// so if the folder was renamed or covered by a mount.
func strays(w opener, name string) bool {
	if w == nil {
		return false
	}
	mine, err := w.lstat(name)
	named, perr := lstat(name)
	return (err == nil || perr == nil) && (err != nil || perr != nil || mine.Ino != named.Ino || mine.Dev != named.Dev)
}

// folderLock is a flock on the descriptor of a folder.
type folderLock struct {
	fd     int
	closed atomic.Bool
}

func (osFS) openFolderLock(name string) (FolderLock, error) { return openFolderLock(openFD, name) }

func (b *below) openFolderLock(name string) (FolderLock, error) {
	return openFolderLock(b.openFD, name)
}

func openFolderLock(open func(string, int, fs.FileMode) (int, error), name string) (FolderLock, error) {
	fd, err := open(throughLink(name), unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return &folderLock{fd: fd}, nil
}

func (l *folderLock) TryLock(mode Mode) (bool, error) {
	err := retry(func() error { return unix.Flock(l.fd, flockOp(mode)|unix.LOCK_NB) })
	if err == unix.EWOULDBLOCK {
		return false, nil
	}
	return err == nil, err
}

func (l *folderLock) Unlock() error {
	return retry(func() error { return unix.Flock(l.fd, unix.LOCK_UN) })
}

func (l *folderLock) Close() error { return closeOnce(&l.closed, l.fd) }

// closeOnce closes a bare descriptor on the first call. A later call returns fs.ErrClosed and closes nothing, because
// another file may have the number of the descriptor by then.
func closeOnce(closed *atomic.Bool, fd int) error {
	if closed.Swap(true) {
		return fs.ErrClosed
	}
	return unix.Close(fd)
}
