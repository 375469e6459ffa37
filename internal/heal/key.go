package heal

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

	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/vfs"
)

const (
	keyName   = "undo.key"
	keySize   = 32
	keyDomain = "varve undo 1"
)

// mark is what makes a line of an undo manifest known as this copy's; see the package
// comment.
type mark struct {
	key    []byte
	folder uint64 // the number of the store's folder
}

// sum is that of a line, without the sum.
func (m *mark) sum(id string, line []byte) string {
	h := hmac.New(sha256.New, m.key)
	_, _ = fmt.Fprintf(h, "%s\x00%s\x00", keyDomain, id)
	_, _ = h.Write(line)
	return hex.EncodeToString(h.Sum(nil))
}

// keys is where the key of a user is, and what makes one.
type keys struct {
	fs     vfs.FS
	dir    string // "": nowhere
	random func([]byte) error
}

// markOf is that of the store in a folder. Only a repair makes a key where there is none.
func (o *keys) markOf(dir string, create bool) (*mark, error) {
	info, err := o.fs.Stat(dir + string(filepath.Separator) + ".")
	if err != nil {
		return nil, err
	}
	if info.Ino == 0 {
		return nil, &keyError{dir, "its file system gives folders no numbers, by which this copy of the store would be known"}
	}
	switch {
	case o.dir == "":
		return nil, &keyError{"", "this user has no folder for a key: set XDG_STATE_HOME, or HOME, or Options.StateDir"}
	case places.Within(o.dir, dir):
		return nil, &keyError{o.dir, "it lies in the store, where others may have put a key: set XDG_STATE_HOME, or Options.StateDir, to a folder outside"}
	}
	name := filepath.Join(o.dir, keyName)
	key, err := readKey(o.fs, name)
	if errors.Is(err, fs.ErrNotExist) && create {
		if err = makeKey(o, name); err == nil {
			key, err = readKey(o.fs, name)
		}
	}
	var known *keyError
	switch {
	case err == nil:
	case errors.As(err, &known), vfs.IsStarved(err):
		return nil, err
	case errors.Is(err, fs.ErrNotExist) && !create:
		return nil, &keyError{name, "there is no key: no repair that can be undone was made by this user on this machine"}
	default:
		return nil, &keyError{name, err.Error()}
	}
	return &mark{key, info.Ino}, nil
}

// keyError says why there is no key with which manifests are marked. It is an answer,
// not a failure to look.
type keyError struct{ path, why string }

func (e *keyError) Error() string {
	if e.path == "" {
		return e.why
	}
	return places.Shown(filepath.ToSlash(e.path)) + ": " + e.why
}

func (e *keyError) Unwrap() error { return errs.ErrInvalid }

func readKey(fsys vfs.FS, name string) ([]byte, error) {
	info, err := fsys.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.Mode.IsRegular() && runtime.GOOS != "windows" && info.Mode.Perm()&0o077 != 0 {
		return nil, &keyError{name, fmt.Sprintf("others may read it or write to it (%s): chmod 600 it if nobody else did; else remove it, and what was repaired so far cannot be undone", info.Mode.Perm())}
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
		return nil, &keyError{name, "it is not a key: remove it, and what was repaired so far cannot be undone"}
	}
	return key, nil
}

// makeKey makes one whole, or none: of two processes that make it the first one's stays.
func makeKey(o *keys, name string) error {
	key := make([]byte, keySize)
	var salt [4]byte
	if err := errors.Join(o.random(key), o.random(salt[:])); err != nil {
		return err
	}
	if err := vfs.MkdirAll(o.fs, filepath.Dir(name), 0o700); err != nil {
		return err
	}
	temp := fmt.Sprintf("%s.%x.new", name, salt)
	f, err := o.fs.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(hex.EncodeToString(key)+"\n"), 0)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = o.fs.RenameNew(temp, name)
	}
	if err != nil {
		_ = o.fs.Remove(temp) // 65 bytes stay where that fails too
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	}
	return o.fs.SyncDir(filepath.Dir(name))
}
