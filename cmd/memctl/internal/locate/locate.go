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
	Folder     = "storage" // name of the folder of a project's store
	configName = "config.json"
	// movedName is the name of the file that remains in the old folder of a store that was moved to another folder.
	// The file names the new folder.
	movedName = "moved.json"
)

// Nearest returns the nearest store from dir upwards. It skips stores of other users, and stores at a symbolic link
// whose target is outside of the folder with the link. passed lists the skipped folders that look like stores. If
// there is no store, the error matches varve.ErrNoStore and says that the environment variable called variable is not
// set.
func Nearest(dir, variable string, self Users) (found string, passed []Passed, err error) {
	var searched []string
	for at := dir; ; at = filepath.Dir(at) {
		for _, c := range []string{at, filepath.Join(at, Folder)} {
			searched = append(searched, c)
			way := Here
			if c != at {
				way = Storage
			}
			// Do not open files of another user: a lease on one would have to be waited for.
			p := self.Check(way, c)
			if p == nil && IsStore(c) {
				if p = self.Check(way, c); p == nil { // checked again: the store may have been created meanwhile
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

// closed reports whether this user cannot read a folder. For such a folder, only its name can suggest that it is a
// store.
func closed(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, configName))
	return vfs.IsPermission(err)
}

// looksLike reports whether a folder may be a store, judging only by the names of its files.
func looksLike(dir string) bool {
	memories, err := os.Lstat(filepath.Join(dir, "memories"))
	return isFile(filepath.Join(dir, movedName)) || hasLog(dir) ||
		isFile(filepath.Join(dir, configName)) && err == nil && memories.IsDir()
}

// looking returns a file system for reading. A read of a file on which another process has a lease waits only a short
// time for the end of the lease.
func looking() vfs.FS { return vfs.Patient(vfs.OS(), 100*time.Millisecond) }

// configLimit is the maximum size of a config.json that is read, as in the store itself.
const configLimit = 1 << 20

// IsStore reports whether a folder is a store, or was a store that was moved away. A folder is a store if its
// config.json has the member "varve". If config.json is damaged or not a file, or a missing permission or a lease
// prevents reading it, the folder counts as a store if it has a log. If config.json is missing, the folder must have a
// log and a checkpoint.
func IsStore(dir string) bool {
	if wasStore(dir) {
		return true // opening the store reports where it is now
	}
	b, err := vfs.ReadFile(looking(), filepath.Join(dir, configName), configLimit)
	switch {
	case errors.Is(err, vfs.ErrNotRegular), errors.Is(err, varve.ErrTooLarge), vfs.IsPermission(err), vfs.IsLeased(err):
		return hasLog(dir) // opening the store reports the fault
	case errors.Is(err, fs.ErrNotExist):
		return hasLog(dir) && hasCheckpoint(dir) // opening the store creates a new one
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

// wasStore reports whether a folder contains moved.json, the file that remains of a store that was moved away.
// If that file is damaged, wasStore reports whether the folder has a log.
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

// hasCheckpoint reports whether one of the two slots of the checkpoint file begins with the name of the format.
// Package wal describes the slots.
func hasCheckpoint(dir string) bool {
	b, err := vfs.ReadFile(looking(), filepath.Join(dir, "checkpoint"), 1<<20)
	return err == nil && bytes.Contains(b, []byte("VARVECHK"))
}

// isFile reports whether name is a regular file; a pipe, a device or a link is not a sign of a
// store.
func isFile(name string) bool {
	info, err := os.Lstat(name)
	return err == nil && info.Mode().IsRegular()
}
