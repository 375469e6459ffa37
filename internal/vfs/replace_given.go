package vfs

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/varve-db/varve/errs"
)

// ReplaceGiven writes a file with the mode perm at a path that a user has passed. The file gets its name when it is
// complete. If writing fails, no other file is left in the folder. If the path leads to a file that is not regular (a
// FIFO, a device), or to an open file of this process such as /dev/stdout, ReplaceGiven writes into that file. A FIFO
// or device must belong to this user or to root, so that another user cannot create a FIFO at the path of an output
// file and read the output.
func ReplaceGiven(name string, perm fs.FileMode, write func(io.Writer) error) error {
	info, err := os.Stat(name)
	if err == nil && (!info.Mode().IsRegular() || inherited(name)) {
		f, err := openSink(name, info)
		if err != nil {
			return err
		}
		return fill(f, write)
	}
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*.part")
	if err != nil {
		return err
	}
	if err = f.Chmod(perm); err != nil {
		err = errors.Join(err, f.Close())
	} else if err = fill(f, write); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// openSink opens a file into which the output is written directly. It checks the owner before it opens the file,
// because opening a device can have an effect. It checks again afterwards, because the name may lead to another file by
// then.
func openSink(name string, info fs.FileInfo) (*os.File, error) {
	if !inherited(name) {
		if err := ownSink(name, info); err != nil {
			return nil, err
		}
	}
	flags := os.O_WRONLY
	if info.Mode().IsRegular() { // the parent process opened it, perhaps to append
		flags |= os.O_APPEND
	}
	f, err := os.OpenFile(name, flags, 0)
	if err != nil {
		return nil, err
	}
	opened, err := f.Stat()
	if err == nil && !os.SameFile(info, opened) {
		err = pathError("open", name, errReplacedSink)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

var errReplacedSink = errors.New("the file was replaced meanwhile: run the command again")

// inherited reports whether a path names a file that is open in this process, for example a file that the parent
// process has opened, or a process substitution of a shell.
func inherited(name string) bool {
	switch name = filepath.Clean(name); filepath.Dir(name) {
	case "/dev/fd", "/proc/self/fd":
		return strings.Trim(filepath.Base(name), "0123456789") == ""
	}
	return name == "/dev/stdout" || name == "/dev/stderr"
}

// ownSink returns an error if a file, or a link at its path, belongs to a user other than this one and root.
func ownSink(name string, info fs.FileInfo) error {
	for _, at := range []func() (fs.FileInfo, error){func() (fs.FileInfo, error) { return os.Lstat(name) },
		func() (fs.FileInfo, error) { return info, nil }} {
		i, err := at()
		if err != nil {
			return err
		}
		if owner, known := ownerOf(i); known && owner != 0 && owner != os.Geteuid() {
			return &errs.PermissionError{
				Path: name, Why: "is " + KindOf(i.Mode()) + " of another user, who may get the output",
				Fix: "name another file, or write to stdout", Owner: uint32(owner), Mode: i.Mode(), You: os.Geteuid(),
				Err: fs.ErrPermission,
			}
		}
	}
	return nil
}

func fill(f *os.File, write func(io.Writer) error) error {
	w := bufio.NewWriterSize(f, 256<<10)
	err := write(w)
	if err == nil {
		err = w.Flush()
	}
	if info, serr := f.Stat(); err == nil && serr == nil && info.Mode().IsRegular() {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
