package journal

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/vfs"
)

const (
	keyName   = "undo.key"
	keySize   = 32
	keyDomain = "varve undo 1"
)

// Mark is what makes a line of an undo manifest known as this copy's; see the package
// comment.
type Mark struct {
	key    []byte
	Folder uint64 // the number of the store's folder
}

// sum is that of a line, without the sum.
func (m *Mark) sum(id string, line []byte) string {
	h := hmac.New(sha256.New, m.key)
	_, _ = fmt.Fprintf(h, "%s\x00%s\x00", keyDomain, id)
	_, _ = h.Write(line)
	return hex.EncodeToString(h.Sum(nil))
}

// Keys is where the key of a user is, and what makes one.
type Keys struct {
	FS     vfs.FS
	Dir    string // "": nowhere
	Random func([]byte) error
}

// Mark is that of the store in a folder. Only a repair makes a key where there is none.
func (o *Keys) Mark(dir string, create bool) (*Mark, error) {
	info, err := o.FS.Stat(dir + string(filepath.Separator) + ".")
	if err != nil {
		return nil, err
	}
	if info.Ino == 0 {
		return nil, &NoKey{dir, "its file system gives folders no numbers, by which this copy of the store would be known"}
	}
	switch {
	case o.Dir == "":
		return nil, &NoKey{"", "this user has no folder for a key: set XDG_STATE_HOME, or HOME, or Options.StateDir"}
	case places.Within(o.Dir, dir):
		return nil, &NoKey{o.Dir, "it lies in the store, where others may have put a key: set XDG_STATE_HOME, or Options.StateDir, to a folder outside"}
	}
	name := filepath.Join(o.Dir, keyName)
	key, err := readKey(o.FS, name)
	if errors.Is(err, fs.ErrNotExist) && create {
		if err = makeKey(o, name); err == nil {
			key, err = readKey(o.FS, name)
		}
	}
	var known *NoKey
	switch {
	case err == nil:
	case errors.As(err, &known), vfs.IsStarved(err):
		return nil, err
	case errors.Is(err, fs.ErrNotExist) && !create:
		return nil, &NoKey{name, "there is no key: no repair that can be undone was made by this user on this machine"}
	default:
		return nil, &NoKey{name, err.Error()}
	}
	return &Mark{key, info.Ino}, nil
}

// NoKey says why there is no key with which manifests are marked. It is an answer,
// not a failure to look.
type NoKey struct{ path, why string }

func (e *NoKey) Error() string {
	if e.path == "" {
		return e.why
	}
	return places.Shown(filepath.ToSlash(e.path)) + ": " + e.why
}

// Unwrap makes the error match errs.ErrInvalid.
func (e *NoKey) Unwrap() error { return errs.ErrInvalid }

func readKey(fsys vfs.FS, name string) ([]byte, error) {
	info, err := fsys.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.Mode.IsRegular() && runtime.GOOS != "windows" && info.Mode.Perm()&0o077 != 0 {
		return nil, &NoKey{name, fmt.Sprintf("others may read it or write to it (%s): chmod 600 it if nobody else did; else remove it, and what was repaired so far cannot be undone", info.Mode.Perm())}
	}
	b, err := vfs.ReadFile(fsys, name, 2*keySize+1)
	if errors.Is(err, errs.ErrInvalid) || errors.Is(err, errs.ErrTooLarge) {
		err = nil // another file than ours
	}
	if err != nil {
		return nil, err
	}
	key := make([]byte, keySize)
	if n, err := hex.Decode(key, b[:min(len(b), 2*keySize)]); err != nil || n != keySize || len(b) != 2*keySize+1 {
		return nil, &NoKey{name, "it is not a key: remove it, and what was repaired so far cannot be undone"}
	}
	return key, nil
}

// makeKey makes one whole, or none: of two processes that make it the first one's stays.
func makeKey(o *Keys, name string) error {
	key := make([]byte, keySize)
	var salt [4]byte
	if err := errors.Join(o.Random(key), o.Random(salt[:])); err != nil {
		return err
	}
	fsys := owned(o.FS, filepath.Dir(name))
	if err := vfs.MkdirAll(fsys, filepath.Dir(name), 0o700); err != nil {
		return err
	}
	temp := fmt.Sprintf("%s.%x.new", name, salt)
	f, err := fsys.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(hex.EncodeToString(key)+"\n"), 0)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = fsys.RenameNew(temp, name)
	}
	if err != nil {
		_ = fsys.Remove(temp) // 65 bytes stay where that fails too
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	}
	return fsys.SyncDir(filepath.Dir(name))
}

// owned has what root makes on the way to a folder belong to the owner of what is above it: with
// the HOME of another user (sudo -E) that user could else make nothing in his own ~/.local.
func owned(fsys vfs.FS, dir string) vfs.FS {
	if os.Geteuid() != 0 {
		return fsys
	}
	for above := dir; ; above = filepath.Dir(above) {
		if info, err := fsys.Stat(above); err == nil && info.Mode.IsDir() {
			return vfs.Below(fsys, above)
		}
		if above == filepath.Dir(above) {
			return fsys
		}
	}
}
