package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Doomed is a file that is about to lose its last name, and whose bytes are to be
// nowhere then.
type Doomed struct {
	fs     FS
	f      File
	name   string
	second string // "": there are no links
}

// Doom takes hold of a file before its name goes. It gives it a second name, durably, on
// the same file system: a process that is killed leaves it there, for the next to overwrite.
// What such a one has left there goes first; while somebody has that open it stays, and the
// second name is another one. nil where the file is not there or may not be written; and, of one
// that others map, where there are no leases: it cannot be told then whether a process has it
// mapped.
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

// freeSecond is a second name at which nothing is. What was left there is overwritten,
// unless it is in its place still, or somebody has it open: then it keeps that name.
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
		case err == nil || errors.Is(err, ErrLinked): // its name is gone
			return second, nil
		case !errors.As(err, &u):
			return "", err
		}
		second = fmt.Sprintf("%s.%d%s", base, n, ext)
	}
}

// SameFile reports whether two names lead to one file.
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
	if IsDiskFull(err) { // a process killed now leaves it in free blocks
		return nil
	}
	if err != nil {
		return err
	}
	d.second = second
	return d.fs.SyncDir(filepath.Dir(second))
}

// unlink takes the second name off.
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

// Close lets the file go as it is. Where the second name is all that it has left it keeps
// that: the next purge finds it there.
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

// names is how many names the file has besides the second one.
func (d *Doomed) names() (n uint64, info Info, err error) {
	info, err = d.f.Stat()
	n = info.Nlink
	if d.second != "" && n > 0 {
		n--
	}
	return n, info, err
}

// Named says what has a name still: ino is 0 where it has none, or it cannot be told.
func (d *Doomed) Named() (ino uint64) {
	if d == nil {
		return 0
	}
	if n, info, err := d.names(); err == nil && n > 0 {
		return info.Ino
	}
	return 0
}

// Wipe overwrites what has no name any more but the second one, which must be durable, and lets the
// file go. left says that it was not overwritten: another process still has it open or mapped, and
// would read zeros for what it knows to be sound. One that has a name stays as it is: see Named.
func (d *Doomed) Wipe() (left bool, err error) {
	if d == nil {
		return true, nil
	}
	n, _, err := d.names()
	if err == nil && n == 0 {
		var granted bool
		if granted, err = d.f.Lease(); errors.Is(err, errors.ErrUnsupported) {
			granted, err = true, nil // it is none that others map: see Doom
		}
		if granted && err == nil {
			err = Zero(d.f, 0)
		}
		left = !granted || err != nil
	}
	if err == nil { // else it keeps the name under which the next finds it
		err = d.unlink()
	}
	return left, errors.Join(err, d.f.Close())
}

// ReplaceWiped is WriteDurable over a file that nobody maps, whose bytes are to be nowhere
// then; second is as of Doom. left is as of Doomed.Wipe; that the old file has another name is an
// *UnwipedError.
func ReplaceWiped(fsys FS, temp, name, second string, data []byte, perm fs.FileMode) (left bool, err error) {
	old, err := Doom(fsys, name, second, false)
	if err != nil {
		return false, err
	}
	if err := WriteDurable(fsys, temp, name, data, perm); err != nil {
		return false, errors.Join(err, old.Close())
	}
	ino := old.Named()
	if left, err = old.Wipe(); err == nil && ino != 0 {
		err = &UnwipedError{name, ino, ErrLinked}
	}
	return left, err
}
