package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/vfs"
)

const (
	StoreVariable = "VARVE_STORE"
	StoreFolder   = "storage" // what a project's store is called
	configName    = "config.json"
	movedName     = "moved.json" // what a store that was moved away leaves
)

// Named is the store that the user named, "" when he did not.
func (a *App) Named() string {
	if a.Store != "" {
		return a.Store
	}
	return a.Getenv(StoreVariable)
}

// Locate finds the store's folder.
func (a *App) Locate() (string, error) {
	if dir := a.Named(); dir != "" {
		return dir, nil
	}
	dir, err := a.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the current folder: %w", err)
	}
	found, err := nearest(dir)
	if err != nil {
		if served, derr := DataFolder(a.Getenv, runtime.GOOS); derr == nil && IsStore(served) {
			err = WithFix(err, "create one with memctl init DIR, or name one with --store DIR; the store of memctl mcp is "+ShellQuote(served))
		}
	}
	return found, err
}

// nearest looks for a store from dir upwards.
func nearest(dir string) (string, error) {
	var searched []string
	for at := dir; ; at = filepath.Dir(at) {
		for _, c := range []string{at, filepath.Join(at, StoreFolder)} {
			if IsStore(c) {
				return c, nil
			}
			searched = append(searched, c)
		}
		if filepath.Dir(at) == at {
			break
		}
	}
	return "", fmt.Errorf("%w: searched %s, and %s is not set", varve.ErrNoStore, strings.Join(searched, ", "), StoreVariable)
}

// configLimit is how much of a config.json is read, as the store itself does.
const configLimit = 1 << 20

// IsStore knows a store by the member "varve" of its config.json. One whose
// config.json was spoilt, is no file at all, or is gone, still has its log.
func IsStore(dir string) bool {
	if wasStore(dir) {
		return true // opening it says where it is now
	}
	b, err := vfs.ReadFile(vfs.OS(), filepath.Join(dir, configName), configLimit)
	switch {
	case errors.Is(err, vfs.ErrNotRegular), errors.Is(err, varve.ErrTooLarge), vfs.IsPermission(err):
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
	b, err := vfs.ReadFile(vfs.OS(), filepath.Join(dir, movedName), configLimit)
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
	b, err := vfs.ReadFile(vfs.OS(), filepath.Join(dir, "checkpoint"), 1<<20)
	return err == nil && bytes.Contains(b, []byte("VARVECHK"))
}

// isFile: a pipe or a device somebody put there says nothing of a store, nor does a link.
func isFile(name string) bool {
	info, err := os.Lstat(name)
	return err == nil && info.Mode().IsRegular()
}

// DataFolder is where a user's programs keep their data, and ours in it.
func DataFolder(get func(string) string, system string) (string, error) {
	const own = "varve/memory"
	if base := get("XDG_DATA_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, own), nil // by the specification a relative one does not count
	}
	var base []string
	switch system {
	case "windows":
		if dir := get("LOCALAPPDATA"); dir != "" {
			return filepath.Join(dir, own), nil
		}
		base = []string{get("USERPROFILE"), "AppData", "Local"}
	case "darwin":
		base = []string{get("HOME"), "Library", "Application Support"}
	default:
		base = []string{get("HOME"), ".local", "share"}
	}
	if base[0] == "" {
		return "", fmt.Errorf("%w: there is no home folder; name the store by --store or %s", varve.ErrNoStore, StoreVariable)
	}
	return filepath.Join(append(base, own)...), nil
}
