package env

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/vfs"
)

// IOError returns err with the action doing, the path, and a matching sentinel error: ErrDiskFull, ErrPermission or
// ErrTooManyFiles of package errs, if one matches. For a full disk or a refused access it also adds the cause: see
// Explain. It returns nil if err is nil.
func (e *Env) IOError(doing, path string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errs.ErrDiskFull), errors.Is(err, errs.ErrPermission):
		err = fmt.Errorf("%s %s: %w", doing, path, err)
	case vfs.IsDiskFull(err):
		err = fmt.Errorf("%s %s: %w: %w", doing, path, errs.ErrDiskFull, err)
	case vfs.IsPermission(err):
		err = fmt.Errorf("%s %s: %w: %w", doing, path, errs.ErrPermission, err)
	case vfs.IsUnopened(err) && !errors.Is(err, errs.ErrTooManyFiles):
		return fmt.Errorf("%s %s: %w: %w", doing, path, errs.ErrTooManyFiles, err)
	default:
		return fmt.Errorf("%s %s: %w", doing, path, err)
	}
	return e.Explain(err)
}

// Explain returns err with the cause and a remedy, if err means that the disk is full or that the system refused an
// access. It returns any other error unchanged, and nil if err is nil.
func (e *Env) Explain(err error) error {
	switch {
	case err == nil:
		return nil
	case vfs.IsDiskFull(err):
		return e.explainFull(err)
	case vfs.IsPermission(err):
		return e.explainRefusal(err)
	}
	return err
}

// ExplainWith does the same as Explain, also for an error at a file in the folder other. This folder is outside the
// store, and the store only reads it.
func (e *Env) ExplainWith(err error, other string) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok && places.Within(pe.Path, other) {
		at := *e
		at.Dir, at.FS = other, vfs.Patient(vfs.Only(e.System.FS, e.StateDir, other), e.LockWait)
		return at.Explain(err)
	}
	return e.Explain(err)
}

func (e *Env) explainFull(err error) error {
	var told *errs.DiskFullError
	if errors.As(err, &told) {
		return err
	}
	path := e.Dir
	if pe, ok := errors.AsType[*fs.PathError](err); ok && !places.Within(pe.Path, e.Dir) {
		path = filepath.Dir(pe.Path) // a backup's, which is on another disk
	}
	return vfs.Full(e.FS, path, err)
}

// explainRefusal returns err, a refused access, with its cause: the mount, a flag, the owner or the mode. It examines
// the file, and the folders above the file up to the folder that contains the store.
func (e *Env) explainRefusal(err error) error {
	var told *errs.PermissionError
	if errors.As(err, &told) {
		return err
	}
	var pe *fs.PathError
	var le *os.LinkError // error of a rename or link: either name may be refused
	paths := []string{e.Dir}
	switch {
	case errors.As(err, &le):
		paths = []string{le.New, le.Old}
	case errors.As(err, &pe):
		paths[0] = pe.Path
	}
	path := paths[0]
	var near []string // the paths from the file upwards within the store, and the folder that contains the store
	for _, path := range paths {
		for at, n := path, 0; n <= 10; at, n = filepath.Dir(at), n+1 {
			if !slices.Contains(near, at) && (len(at) >= len(e.Dir) || len(paths) == 1) {
				near = append(near, at)
			}
			if at == filepath.Dir(at) || at == filepath.Dir(e.Dir) {
				break
			}
		}
	}
	p := &errs.PermissionError{Path: path, You: os.Getuid(), Err: err}
	v, verr := e.FS.Volume(e.Dir)
	if verr == nil && v.ReadOnly || errors.Is(err, syscall.EROFS) {
		p.Path = e.Dir
		for _, ok := e.describe(p, p.Path); !ok && p.Path != filepath.Dir(p.Path); _, ok = e.describe(p, p.Path) {
			p.Path = filepath.Dir(p.Path) // it does not exist yet
		}
		mount := vfs.MountPoint(e.FS, p.Path)
		p.Why, p.Fix = "is on a file system that is mounted read-only", "mount -o remount,rw "+quotePath(mount)
		if mount == filepath.Dir(mount) { // the root file system: read-only on purpose
			p.Fix = "choose a folder on another file system"
			if p.Path == e.Dir {
				p.Fix = "the store can be read; for a copy that can be changed: memctl backup DIR, then memctl " +
					"restore DIR NEW-FOLDER"
			}
		}
		return p
	}
	root, _ := e.FS.Stat(e.Dir + "/.")
	for _, at := range near {
		info, ok := e.describe(p, at)
		if !ok {
			continue
		}
		p.Path = at
		if why, fix := refuses(e.Dir, at, &info, &root, p.You, vfs.FlagsOf(e.FS, at)); why != "" {
			p.Why, p.Fix = why, fix
			return p
		}
	}
	// No known cause: the error has the system's message and the file.
	p.Path = path
	if _, ok := e.describe(p, path); !ok {
		if errors.Is(err, errs.ErrPermission) {
			return err
		}
		return fmt.Errorf("%w: %w", errs.ErrPermission, err)
	}
	p.Why = "cannot be accessed (mandatory access control, or a lock of another program?)"
	return p
}

func (e *Env) describe(p *errs.PermissionError, path string) (vfs.Info, bool) {
	info, err := e.FS.Stat(path)
	if err != nil {
		return info, false
	}
	p.Mode, p.Owner = info.Mode, info.UID
	return info, true
}

// refuses returns the reason for which a user cannot write the file or folder at path, and in fix the command or
// advice that helps. you is the user's id. reason is "" if this file is not the cause. info describes the file. root
// describes dir, the store's folder. The command in fix changes only this file, because one file is no reason to
// change the owner or the mode of a whole store.
func refuses(dir, path string, info, root *vfs.Info, you int, flags vfs.Flags) (reason, fix string) {
	change := "chattr -i "
	if runtime.GOOS == "darwin" {
		change = "chflags nouchg "
	}
	switch {
	case flags.Immutable:
		return "is immutable", change + quotePath(path)
	case flags.AppendOnly:
		return "may only be appended to", "chattr -a " + quotePath(path)
	}
	need, bits := fs.FileMode(0o6), "rw"
	if info.Mode.IsDir() {
		need, bits = 0o7, "rwx"
	}
	outside := len(path) < len(dir) // the folder that contains the store
	asOwner := fmt.Sprintf("run the command as the owner: sudo -u '#%d' …", info.UID)
	switch perm := info.Mode.Perm(); {
	case you <= 0: // root, or a system without such users
		return "", ""
	case int(info.UID) == you && perm>>6&need != need:
		return "does not let its owner write", "chmod u+" + bits + " " + quotePath(path)
	case int(info.UID) != you && perm&need != need && (perm>>3&need != need):
		switch {
		case outside && perm&0o1 != 0 && root.Mode != 0: // the store exists, and its parent may be passed
			return "", ""
		case outside && perm&0o1 != 0: // the store is to be created in it
			return "does not let you write", fmt.Sprintf("choose a folder of your own, or sudo install -d -o %d -m "+
				"700 %s", you, quotePath(dir))
		case outside:
			return "does not let you enter", asOwner
		case path != dir && vfs.InfoIsShared(root) && info.GID == root.GID:
			return "denies access to the group to which the store belongs",
				fmt.Sprintf("ask the owner to run: chmod g+%s %s", bits, quotePath(path))
		case path != dir && vfs.InfoIsShared(root):
			return "denies access to the group to which the store belongs",
				fmt.Sprintf("ask the owner to run: chgrp -h %d %s && chmod g+%s %s", root.GID, quotePath(path), bits,
					quotePath(path))
		case path != dir && int(root.UID) == you:
			return "belongs to another user", fmt.Sprintf("sudo chown -h %d %s", you, quotePath(path))
		}
		return "belongs to another user", asOwner
	case int(info.UID) != you && perm&need != need && !inGroup(info.GID):
		return fmt.Sprintf("belongs to group %d, of which you are not a member", info.GID),
			"have the administrator add you to the group, or " + asOwner
	}
	return "", ""
}

func inGroup(gid uint32) bool {
	groups, err := os.Getgroups()
	return err != nil || os.Getegid() == int(gid) || slices.Contains(groups, int(gid))
}

// quotePath quotes a path as one word of a shell.
func quotePath(path string) string {
	for _, r := range path {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '/' || r == '.' || r == '-' ||
			r == '_') {
			return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
		}
	}
	return path
}

// Passing reports whether err is a failure to read that proves neither damage nor a missing file: an error of the
// system other than fs.ErrNotExist (too many open files, a loose cable), or errs.ErrNewerFormat.
func Passing(err error) bool {
	var no syscall.Errno
	return errors.Is(err, errs.ErrNewerFormat) || errors.As(err, &no) && !errors.Is(err, fs.ErrNotExist)
}
