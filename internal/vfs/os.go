package vfs

import (
	"io/fs"
	"os"
	"path/filepath"
)

// OS returns the file system of the operating system.
func OS() FS { return osFS{} }

type osFS struct{}

func (osFS) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := openFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &osFile{f: f}, nil
}

func (osFS) Mkdir(name string, perm fs.FileMode) error { return mkdirOS(name, perm) }

func (osFS) Remove(name string) error { return os.Remove(name) }

func (osFS) Rename(old, new string) error { return rename(old, new) }

func (osFS) RenameNew(old, new string) error {
	return linkError("rename", old, new, renameNew(old, new))
}

func (osFS) Exchange(a, b string) error { return linkError("exchange", a, b, exchange(a, b)) }

func (osFS) Link(old, new string) error { return linkError("link", old, new, link(old, new)) }

func (osFS) Stat(name string) (Info, error) { return lstat(name) }

func (osFS) ReadDir(name string) ([]string, error) { return readDir(name) }

// ReadTypes lists a folder with the types of its entries; it implements TypeReader.
func (osFS) ReadTypes(name string) ([]Entry, error) { return readTypesBy(nil, name) }

func (osFS) SyncDir(name string) error { return pathError("sync", name, syncDir(name)) }

func (osFS) OpenLock(name string, perm fs.FileMode) (Lock, error) { return openLock(name, perm) }

func (osFS) OpenShared(name string, create bool, perm fs.FileMode) (Shared, error) {
	return openShared(name, create, perm)
}

func (osFS) OpenBarrier(name string) (Barrier, error) {
	b, err := openBarrier(nil, name)
	if err != nil {
		return nil, pathError("barrier", name, err)
	}
	return b, nil
}

func (osFS) Volume(name string) (Volume, error) {
	v, err := volume(name)
	return v, pathError("statfs", name, err)
}

func (osFS) Host() Host {
	h := Process(os.Getpid())
	h.Birth = birth()
	return h
}

// Process returns a description of another process of this machine, for messages about the holder of a lock. The
// Command of the result is "" if there is no such process or if the system does not report the command.
func Process(pid int) Host {
	name, _ := os.Hostname() // for messages only
	return Host{
		Boot:         nonZero(bootID()),
		PID:          pid,
		Command:      command(pid),
		Name:         name,
		PIDNamespace: pidNamespace(),
	}
}

// nonZero returns id, or a fixed other value if id is zero. A boot id must differ from the contents of a page of zeros.
func nonZero(id [2]uint64) [2]uint64 {
	if id == [2]uint64{} {
		id[1] = 1
	}
	return id
}

func ownCommand() string { return filepath.Base(os.Args[0]) }

func pathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

func linkError(op, old, new string, err error) error {
	if err == nil {
		return nil
	}
	return &os.LinkError{Op: op, Old: old, New: new, Err: err}
}
