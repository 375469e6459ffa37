package vfs

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/windows"
)

// openFile opens a file so that it can be deleted while it is open, which os.OpenFile does not allow: otherwise a file
// could not be replaced while a process reads it.
func openFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	return openFileBy(nil, nil, name, flag, perm)
}

// opener is a check of the path to a file before it is opened; nil: no check.
type opener func(name string, flag int, perm fs.FileMode) (int, error)

func (b *below) openFD(name string, _ int, _ fs.FileMode) (int, error) { return 0, b.enter(name) }

// ways is empty: there is only one way to open files on Windows.
type ways struct{}

func (b *below) init() {}

func (b *below) opening() opener { return b.openFD }

func (b *below) making() opener { return b.create }

func (b *below) lstat(name string) (Info, error) { return lstat(name) }

func lstatBy(_ opener, name string) (Info, error) { return lstat(name) }

func openFileBy(look opener, _ *patience, name string, flag int, perm fs.FileMode) (*os.File, error) {
	if look != nil {
		if _, err := look(name, flag, perm); err != nil {
			return nil, pathError("open", name, err)
		}
	}
	access := uint32(windows.GENERIC_READ)
	switch flag & (os.O_RDONLY | os.O_WRONLY | os.O_RDWR) {
	case os.O_WRONLY:
		access = windows.GENERIC_WRITE
	case os.O_RDWR:
		access = windows.GENERIC_READ | windows.GENERIC_WRITE
	}
	mode := uint32(windows.OPEN_EXISTING)
	switch {
	case flag&(os.O_CREATE|os.O_EXCL) == os.O_CREATE|os.O_EXCL:
		mode = windows.CREATE_NEW
	case flag&os.O_CREATE != 0:
		mode = windows.OPEN_ALWAYS
	}
	path, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	h, err := windows.CreateFile(path, access,
		windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE, nil, mode,
		windows.FILE_ATTRIBUTE_NORMAL|windows.FILE_FLAG_OPEN_REPARSE_POINT, 0)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	f := os.NewFile(uintptr(h), name)
	// A reparse point that is not a link, as of a file stored in the cloud, has an irregular mode but is a file.
	if st, err := f.Stat(); err == nil && st.Mode()&fs.ModeType&^fs.ModeIrregular != 0 {
		return nil, errors.Join(&NotRegularError{Path: name, Mode: st.Mode()}, f.Close())
	}
	if flag&os.O_TRUNC != 0 {
		if err := f.Truncate(0); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return f, nil
}

// readDir returns the names in a folder. It reads only folders, and follows no link or junction.
func readDir(name string) ([]string, error) { return readDirBy(nil, name) }

func readDirBy(look opener, name string) ([]string, error) {
	d, err := openDir(look, name)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Readdirnames(-1)
}

func openDir(look opener, name string) (*os.File, error) {
	if look != nil {
		if _, err := look(name, 0, 0); err != nil {
			return nil, pathError("open", name, err)
		}
	}
	if !strings.HasSuffix(name, throughLink("")) {
		if st, err := os.Lstat(name); err == nil && !st.Mode().IsDir() {
			return nil, &NotFolderError{Path: name, Mode: st.Mode()}
		}
	}
	return os.Open(name)
}

func rename(old, new string) error {
	return linkError("rename", old, new, move(old, new, windows.MOVEFILE_REPLACE_EXISTING))
}

func renameNew(old, new string) error { return move(old, new, 0) }

func move(old, new string, flags uint32) error {
	from, err := windows.UTF16PtrFromString(old)
	if err != nil {
		return err
	}
	to, err := windows.UTF16PtrFromString(new)
	if err != nil {
		return err
	}
	return windows.MoveFileEx(from, to, flags|windows.MOVEFILE_WRITE_THROUGH)
}

func exchange(_, _ string) error { return errors.ErrUnsupported }

func link(old, new string) error {
	err := os.Link(old, new)
	if errors.Is(err, windows.ERROR_INVALID_FUNCTION) || errors.Is(err, windows.ERROR_NOT_SUPPORTED) {
		return errors.ErrUnsupported
	}
	var le *os.LinkError
	if errors.As(err, &le) {
		return le.Err
	}
	return err
}

func lstat(name string) (Info, error) {
	st, err := os.Lstat(name)
	if err != nil {
		return Info{}, err
	}
	path, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return Info{}, pathError("lstat", name, err)
	}
	h, err := windows.CreateFile(path, windows.FILE_READ_ATTRIBUTES,
		windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE, nil, windows.OPEN_EXISTING,
		windows.FILE_FLAG_BACKUP_SEMANTICS|windows.FILE_FLAG_OPEN_REPARSE_POINT, 0)
	if err != nil {
		return Info{}, pathError("lstat", name, err)
	}
	defer windows.CloseHandle(h)
	return info(st, h)
}

func fstat(f *os.File) (Info, error) {
	st, err := f.Stat()
	if err != nil {
		return Info{}, err
	}
	var out Info
	err = control(f, func(fd uintptr) (err error) {
		out, err = info(st, windows.Handle(fd))
		return err
	})
	return out, err
}

func info(st fs.FileInfo, h windows.Handle) (Info, error) {
	var d windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(h, &d); err != nil {
		return Info{}, pathError("stat", st.Name(), err)
	}
	return Info{
		Size:  st.Size(),
		Mtime: st.ModTime(),
		Mode:  st.Mode(),
		Ino:   uint64(d.FileIndexHigh)<<32 | uint64(d.FileIndexLow),
		Dev:   uint64(d.VolumeSerialNumber),
		Nlink: uint64(d.NumberOfLinks),
	}, nil
}

// syncDir does nothing: NTFS keeps its folders in a journal and does not open them for a flush.
func syncDir(string) error { return nil }

func datasync(f *os.File) error {
	return control(f, func(fd uintptr) error { return windows.FlushFileBuffers(windows.Handle(fd)) })
}

// setMode does nothing: Windows has access lists instead of permission bits.
func setMode(*os.File, fs.FileMode) error { return nil }

func setMtime(f *os.File, t time.Time) error {
	ft := windows.NsecToFiletime(t.UnixNano())
	return control(f, func(fd uintptr) error {
		return windows.SetFileTime(windows.Handle(fd), nil, nil, &ft)
	})
}

func lease(*os.File) (bool, error) { return false, errors.ErrUnsupported }
func unlease(*os.File) error       { return errors.ErrUnsupported }
