package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Doomed is a file that is about to lose its last name. The contents of the file must be overwritten after that.
type Doomed struct {
	fs     FS
	f      File
	name   string
	second string // the second name of the file; "": the file system has no links
}

// Doom opens a file before its name is removed, and durably gives it a second name on the same file system: if the
// process is killed, the next process finds the file there and overwrites it. If an earlier process left another file
// at the path second, Doom overwrites that file first. If some process still has that other file open, Doom leaves it
// there and uses another second name.
//
// Doom returns nil if the file does not exist, or if this process lacks the permission to write it. mapped is true if
// other processes may have the file mapped. Then Doom also returns nil if the system has no leases, because it cannot
// find out whether a process has the file mapped.
func Doom(fsys FS, name, second string, mapped bool) (*Doomed, error) {
	second, err := freeSecond(fsys, name, second)
	if err != nil {
		return nil, err
	}
	f, err := fsys.OpenFile(name, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) || IsPermission(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	granted, err := f.Lease()
	if granted {
		err = f.Unlease()
	}
	if errors.Is(err, errors.ErrUnsupported) {
		if mapped {
			return nil, f.Close()
		}
		err = nil
	}
	d := &Doomed{fs: fsys, f: f, name: name}
	if err == nil {
		err = d.link(second)
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// freeSecond returns a path at which the file at name can get a second name: second, or second with a number in it.
// What an earlier process left at such a path is removed:
//
//   - Another file is overwritten and removed. If that file has one more name, only this name is removed.
//   - If another file cannot be overwritten, for example because a process has it open, it stays, and freeSecond
//     tries the next number.
//   - If the path is a second name of the file at name, that second name is removed.
func freeSecond(fsys FS, name, second string) (string, error) {
	base, ext := strings.TrimSuffix(second, filepath.Ext(second)), filepath.Ext(second)
	for n := 1; ; n++ {
		_, err := fsys.Stat(second)
		if errors.Is(err, fs.ErrNotExist) {
			return second, nil
		}
		if err == nil && SameFile(fsys, name, second) {
			return second, fsys.Remove(second)
		}
		if err == nil {
			err = WipeAlone(fsys, second)
		}
		var u *UnwipedError
		switch {
		case err == nil || errors.Is(err, ErrLinked): // its name was removed
			return second, nil
		case !errors.As(err, &u):
			return "", err
		}
		second = fmt.Sprintf("%s.%d%s", base, n, ext)
	}
}

// SameFile reports whether two names lead to the same file (inode).
func SameFile(fsys FS, a, b string) bool {
	x, err := fsys.Stat(a)
	if err != nil {
		return false
	}
	y, err := fsys.Stat(b)
	return err == nil && x.Ino == y.Ino && x.Dev == y.Dev
}

func (d *Doomed) link(second string) error {
	err := d.fs.Link(d.name, second)
	if errors.Is(err, errors.ErrUnsupported) || IsPermission(err) {
		return nil
	}
	if IsDiskFull(err) { // a process killed now leaves the contents in free blocks
		return nil
	}
	if err != nil {
		return err
	}
	d.second = second
	return d.fs.SyncDir(filepath.Dir(second))
}

// unlink removes the second name of the file.
func (d *Doomed) unlink() error {
	if d.second == "" {
		return nil
	}
	second := d.second
	d.second = ""
	if err := d.fs.Remove(second); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Close releases the file without overwriting it. If the file has another name, Close removes the second name. If the
// second name is the only one, Close keeps that name, and the next purge finds the file there.
func (d *Doomed) Close() error {
	if d == nil {
		return nil
	}
	n, _, err := d.names()
	if err == nil && n > 0 {
		err = d.unlink()
	}
	return errors.Join(err, d.f.Close())
}

// names returns the number of names that the file has besides the second one.
func (d *Doomed) names() (n uint64, info Info, err error) {
	info, err = d.f.Stat()
	n = info.Nlink
	if d.second != "" && n > 0 {
		n--
	}
	return n, info, err
}

// Named returns the inode number of the file if the file still has a name other than the second name. It returns 0 if
// the file has no such name, or if this is unknown.
func (d *Doomed) Named() (ino uint64) {
	if d == nil {
		return 0
	}
	if n, info, err := d.names(); err == nil && n > 0 {
		return info.Ino
	}
	return 0
}

// Wipe overwrites a file whose only remaining name is the second one, and releases it. The removal of its other
// names must be durable. unwiped means that Wipe did not overwrite the file, because another process still has it
// open or mapped and would read zeros instead of valid data, or because d is nil or overwriting failed. Wipe
// leaves a file with another name unchanged: see Named.
func (d *Doomed) Wipe() (unwiped bool, err error) {
	if d == nil {
		return true, nil
	}
	n, _, err := d.names()
	if err == nil && n == 0 {
		var granted bool
		if granted, err = d.f.Lease(); errors.Is(err, errors.ErrUnsupported) {
			granted, err = true, nil // not a file that other processes map: see Doom
		}
		if granted && err == nil {
			err = Zero(d.f, 0)
		}
		unwiped = !granted || err != nil
	}
	if err == nil { // otherwise it keeps the second name, where the next process finds it
		err = d.unlink()
	}
	return unwiped, errors.Join(err, d.f.Close())
}

// ReplaceWiped does the same as WriteDurable for a file that no process maps, and whose old contents must not
// remain on the disk. second is as for Doom, unwiped as for Doomed.Wipe. If the old file has another name, the
// error is an *UnwipedError.
func ReplaceWiped(fsys FS, temp, name, second string, data []byte, perm fs.FileMode) (unwiped bool, err error) {
	old, err := Doom(fsys, name, second, false)
	if err != nil {
		return false, err
	}
	if err := WriteDurable(fsys, temp, name, data, perm); err != nil {
		return false, errors.Join(err, old.Close())
	}
	ino := old.Named()
	if unwiped, err = old.Wipe(); err == nil && ino != 0 {
		err = &UnwipedError{name, ino, ErrLinked}
	}
	return unwiped, err
}
