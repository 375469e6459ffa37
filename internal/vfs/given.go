package vfs

import (
	"io/fs"
	"os"
)

// OpenGiven opens a file that a user named, or one that is only looked for: a regular
// file, also through a link, for reading. Anything else is a *NotRegularError. It looks
// before it opens, because opening a device can already act on it, and afterwards, because
// another thing may have taken the name meanwhile; it never waits for a FIFO.
func OpenGiven(name string) (*os.File, error) { return openGiven(name, os.Stat, os.OpenFile) }

// OpenIn is OpenGiven below a root, which no link leads out of.
func OpenIn(root *os.Root, name string) (*os.File, error) {
	return openGiven(name, root.Stat, root.OpenFile)
}

// OpenFolderIn opens a folder below a root to list it. Anything else is a *NotFolderError.
func OpenFolderIn(root *os.Root, name string) (*os.File, error) {
	info, err := root.Stat(name)
	if err == nil && !info.IsDir() {
		err = &NotFolderError{Path: name, Mode: info.Mode()}
	}
	if err != nil {
		return nil, err
	}
	return root.OpenFile(name, os.O_RDONLY|nonblock, 0)
}

func openGiven(name string, stat func(string) (fs.FileInfo, error),
	open func(string, int, fs.FileMode) (*os.File, error)) (*os.File, error) {
	info, err := stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &NotRegularError{Path: name, Mode: info.Mode()}
	}
	f, err := open(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() {
		err = &NotRegularError{Path: name, Mode: info.Mode()}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}
