package locate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/vfs"
)

const (
	Folder     = "storage" // what a project's store is called
	configName = "config.json"
	movedName  = "moved.json" // what a store that was moved away leaves
)

// Nearest looks for a store from dir upwards, and passes over those of other users and those to which
// a link leads out of the folder that it is in.
func Nearest(dir, variable string, self Users) (found string, passed []Passed, err error) {
	var searched []string
	for at := dir; ; at = filepath.Dir(at) {
		for _, c := range []string{at, filepath.Join(at, Folder)} {
			searched = append(searched, c)
			way := Here
			if c != at {
				way = Storage
			}
			// Nothing of another user's is opened: a lease on it would be waited for.
			p := self.Check(way, c)
			if p == nil && IsStore(c) {
				if p = self.Check(way, c); p == nil { // it may have come since
					return c, passed, nil
				}
			}
			if p != nil && (looksLike(c) || p.Link == "" && c != at && closed(c)) {
				passed = append(passed, *p)
			}
		}
		if filepath.Dir(at) == at {
			break
		}
	}
	return "", passed, fmt.Errorf("%w: searched %s, and %s is not set", varve.ErrNoStore, strings.Join(searched, ", "),
		variable)
}

// closed reports whether a folder does not tell this user what is in it: the name alone says that it may be a store.
func closed(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, configName))
	return vfs.IsPermission(err)
}

// looksLike reports whether a folder may be a store, by names alone.
func looksLike(dir string) bool {
	memories, err := os.Lstat(filepath.Join(dir, "memories"))
	return isFile(filepath.Join(dir, movedName)) || hasLog(dir) ||
		isFile(filepath.Join(dir, configName)) && err == nil && memories.IsDir()
}

// looking is the file system for a look: a lease of another process on a file delays it for a moment only.
func looking() vfs.FS { return vfs.Patient(vfs.OS(), 100*time.Millisecond) }

// configLimit is how much of a config.json is read, as the store itself does.
const configLimit = 1 << 20

// IsStore knows a store by the member "varve" of its config.json. One whose
// config.json was spoilt, is no file at all, or is gone, still has its log.
func IsStore(dir string) bool {
	if wasStore(dir) {
		return true // opening it says where it is now
	}
	b, err := vfs.ReadFile(looking(), filepath.Join(dir, configName), configLimit)
	switch {
	case errors.Is(err, vfs.ErrNotRegular), errors.Is(err, varve.ErrTooLarge), vfs.IsPermission(err), vfs.IsLeased(err):
		return hasLog(dir) // opening it says what is wrong
	case errors.Is(err, fs.ErrNotExist):
		return hasLog(dir) && hasCheckpoint(dir) // opening it makes another
	case err != nil:
		return false
	}
	var members map[string]json.RawMessage
	err = json.Unmarshal(b, &members)
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		return hasLog(dir)
	}
	_, ok := members["varve"]
	return ok
}

// wasStore knows the note that a store leaves which was moved away. One that cannot be read
// says nothing: a store whose note was spoilt is known by the rest of it.
func wasStore(dir string) bool {
	b, err := vfs.ReadFile(looking(), filepath.Join(dir, movedName), configLimit)
	if err != nil {
		return false
	}
	var note struct {
		Format int `json:"varve_moved"`
	}
	return json.Unmarshal(b, &note) == nil && note.Format > 0 || hasLog(dir)
}

func hasLog(dir string) bool { return isFile(filepath.Join(dir, "wal", "open.lock")) }

// hasCheckpoint looks for the name in one of the two slots; package wal draws them.
func hasCheckpoint(dir string) bool {
	b, err := vfs.ReadFile(looking(), filepath.Join(dir, "checkpoint"), 1<<20)
	return err == nil && bytes.Contains(b, []byte("VARVECHK"))
}

// isFile: a pipe or a device somebody put there says nothing of a store, nor does a link.
func isFile(name string) bool {
	info, err := os.Lstat(name)
	return err == nil && info.Mode().IsRegular()
}
