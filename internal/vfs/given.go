package vfs

import (
	"io/fs"
	"os"
)

// OpenGiven opens a file for reading. The file was named by a user, or was found by a search. It must be a regular file
// or a link to one; for anything else the error is a *NotRegularError. OpenGiven checks this before it opens the file,
// because opening a device can have an effect. It checks again afterwards, because the name may lead to another file by
// then. It never waits for a FIFO.
func OpenGiven(name string) (*os.File, error) { return openGiven(name, os.Stat, os.OpenFile) }

// OpenIn does the same as OpenGiven for a file below a root. It does not follow links that lead out of the root.
func OpenIn(root *os.Root, name string) (*os.File, error) {
	return openGiven(name, root.Stat, root.OpenFile)
}

// OpenFolderIn opens a folder below a root for listing. If the path leads to anything else, the error is a
// *NotFolderError.
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
