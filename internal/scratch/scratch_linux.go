package scratch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

const (
	shared = "/dev/shm"
	tmpfs  = 0x01021994 // type of a tmpfs according to statfs(2)
	locked = "lock"
)

func isMemory(dir string) bool {
	var st syscall.Statfs_t
	return syscall.Statfs(dir, &st) == nil && st.Type == tmpfs
}

// inMemory creates a folder for this process on /dev/shm. ok is false if /dev/shm is not in memory or has less than
// MinFree bytes free, or if the folder cannot be created. remove removes the folder.
func inMemory() (dir string, remove func(), ok bool) {
	var st syscall.Statfs_t
	if syscall.Statfs(shared, &st) != nil || st.Type != tmpfs || int64(st.Bavail)*int64(st.Bsize) < MinFree {
		return "", nil, false
	}
	return createIn(filepath.Join(shared, fmt.Sprint("varve-tests-", os.Getuid())))
}

// createIn creates a folder for this process in the folder parent. All processes of the user share parent. Other users
// cannot list the new folder, but can open files in it by their paths, because some tests run as another user. remove
// removes the new folder. ok is false if the folder cannot be created, or if parent is not a folder of this user into
// which only this user can write.
func createIn(parent string) (dir string, remove func(), ok bool) {
	if err := os.Mkdir(parent, 0o711); err != nil && !errors.Is(err, os.ErrExist) {
		return "", nil, false
	}
	// In a folder that all users can write to, another user may have created this one first.
	info, err := os.Lstat(parent)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o022 != 0 ||
		int(info.Sys().(*syscall.Stat_t).Uid) != os.Getuid() {
		return "", nil, false
	}
	// One at a time: a new folder that is not locked yet looks like a leftover.
	turn, err := lock(parent, 0)
	if err != nil {
		return "", nil, false
	}
	defer turn.Close()
	sweep(parent)
	if dir, err = os.MkdirTemp(parent, ""); err != nil {
		return "", nil, false
	}
	mine, err := lock(dir, 0)
	if err == nil {
		err = os.Chmod(dir, 0o711)
	}
	if err != nil {
		_ = os.RemoveAll(dir)
		return "", nil, false
	}
	return dir, func() {
		_ = os.RemoveAll(dir)
		_ = mine.Close()
	}, true
}

// sweep removes the folders in parent whose processes have ended.
func sweep(parent string) {
	names, _ := os.ReadDir(parent)
	for _, name := range names {
		if !name.IsDir() {
			continue
		}
		dir := filepath.Join(parent, name.Name())
		if f, err := lock(dir, syscall.LOCK_NB); err == nil {
			_ = os.RemoveAll(dir)
			_ = f.Close()
		}
	}
}

// lock locks a folder that Use has created until the returned file is closed or the process ends. If flag is
// syscall.LOCK_NB, lock does not wait for another holder of the lock, but returns an error.
func lock(dir string, flag int) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, locked), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|flag)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}
