package docfile

import (
	"errors"
	"io/fs"

	"github.com/varve-db/varve/internal/vfs"
)

// modeOver returns the permission bits for a file that replaces another one. old describes the file that is replaced,
// and made a file that this process has just created with the mode perm. They are the bits of the old file, with these
// exceptions:
//
//   - The bits that the file system's rule for a shared store has added to the new file (vfs.Share) are set.
//   - The owner may read and write: a purge must be able to overwrite the file. If the owner could not read the old
//     file, the new file keeps its own bits.
//   - The group gets only the rights that all users had if it is not the group of the old file, or if the old file has
//     an access control list. With a list, the bits of the group are the list's mask, and the group itself may have
//     had no rights.
func modeOver(old, made vfs.Info, perm fs.FileMode, list bool) fs.FileMode {
	mode := old.Mode.Perm()
	if mode&0o400 == 0 {
		return made.Mode.Perm()
	}
	mode |= 0o600
	if list || old.GID != made.GID {
		mode &^= 0o070 &^ (mode & 0o007 << 3)
	}
	return mode | made.Mode.Perm()&^perm
}

// keepMode gives the temp file t the permission bits for the file that it will replace at the path of the change, if
// FolderOptions.KeepMode is set.
func (w *worker) keepMode(c *Change, t *temp) error {
	if !c.Folder.o.KeepMode {
		return nil
	}
	return KeepMode(w.f.o.FS, c.Folder.Path(c.Name), t.file, w.like, w.f.o.fileMode())
}

// KeepMode gives a file the permission bits with which it may replace the regular file at a path: see modeOver. made
// describes a file that this process has just created with the mode perm. If no regular file is at the path, or if the
// system does not permit the change, the file keeps its bits.
func KeepMode(fsys vfs.FS, path string, file vfs.File, made vfs.Info, perm fs.FileMode) error {
	old, err := fsys.Stat(path)
	if err != nil || !old.Mode.IsRegular() {
		return nil // the caller finds out what is there when it puts the file in place
	}
	mode := modeOver(old, made, perm, vfs.HasACL(fsys, path))
	if mode == made.Mode.Perm() {
		return nil
	}
	if err := file.SetMode(mode); err != nil && !errors.Is(err, errors.ErrUnsupported) && !vfs.IsPermission(err) {
		return err
	}
	return nil
}
