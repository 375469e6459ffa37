package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/locate"
)

const (
	StoreVariable = "VARVE_STORE"
	StoreFolder   = locate.Folder
)

// Named returns the path of the store that the user named with --store or VARVE_STORE, "" if there is none.
func (a *App) Named() string {
	if a.Store != "" {
		return a.Store
	}
	return a.Getenv(StoreVariable)
}

// Locate returns the folder of the store that the command uses. If the user did not name the store, one that
// belongs to another user, or to which a link leads, is not used.
func (a *App) Locate() (string, error) {
	dir, _, err := a.nearest()
	return dir, err
}

// LocateOrDefault is like Locate, except that without any store it returns the folder of memctl mcp, where a server
// creates one. A store that must not be used is an error.
func (a *App) LocateOrDefault() (string, error) {
	dir, passed, err := a.nearest()
	if !errors.Is(err, varve.ErrNoStore) || passed {
		return dir, err
	}
	if dir, err = DataFolder(a.Getenv, runtime.GOOS); err != nil {
		return "", err
	}
	return dir, a.Admit(locate.DataFolder, dir, "to use this store, name it: --store "+ShellQuote(dir))
}

// nearest returns the folder of the nearest store. passedOver reports whether a nearer store was skipped
// because it must not be used.
func (a *App) nearest() (found string, passedOver bool, err error) {
	if dir := a.Named(); dir != "" {
		return dir, false, nil
	}
	dir, err := a.Getwd()
	if err != nil {
		return "", false, fmt.Errorf("finding the current folder: %w", err)
	}
	found, passed, err := locate.Nearest(dir, StoreVariable, locate.Self(a.Getenv))
	a.passedOver.Do(func() {
		for _, p := range passed {
			a.Note("%s and is not used unless --store (or %s) names it", p.Why(), StoreVariable)
		}
	})
	switch served, derr := DataFolder(a.Getenv, runtime.GOOS); {
	case err == nil:
	case len(passed) > 0 && passed[0].Link != "":
		err = WithFix(err, "to use this store, name it: --store "+ShellQuote(passed[0].Path))
	case len(passed) > 0:
		err = WithFix(err,
			"if you trust its contents, name the store of the other user: --store "+ShellQuote(passed[0].Path))
	case derr == nil && IsStore(served):
		err = WithFix(err,
			"create one with memctl init DIR, or name one with --store DIR; the store of memctl mcp is "+ShellQuote(served))
	}
	return found, len(passed) > 0, err
}

// Admit returns an error if the store at path, or the folder in which a new one would be created, must not be
// used because of its owner or of a link; see package locate. way is how memctl found the path; fix is the
// remedy for the user.
func (a *App) Admit(way locate.Way, path, fix string) error {
	if p := locate.Self(a.Getenv).Check(way, path); p != nil {
		return WithFix(fmt.Errorf("%s: %w", p.Why(), varve.ErrInvalid), fix)
	}
	return nil
}

// ReopenedAs prints on stderr that the store's folder was replaced, and returns the folder of the store that the
// command uses from now on. does is the verb for what the command does with that store, such as "watches".
func (a *App) ReopenedAs(replaced error, does string) (dir string, err error) {
	if dir, err = a.Locate(); err != nil {
		return "", errors.Join(replaced, err)
	}
	if !IsStore(dir) {
		return "", replaced
	}
	a.Warn("%v: memctl now %s another store, the one that is in its place", replaced, does)
	return dir, nil
}

// IsStore reports whether a folder is a store, judging by the files in it.
func IsStore(dir string) bool { return locate.IsStore(dir) }

// DataFolder returns the folder of the default store: a folder within the one where the user's programs keep
// their data.
func DataFolder(get func(string) string, system string) (string, error) {
	const own = "varve/memory"
	if base := get("XDG_DATA_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, own), nil // the specification ignores a relative path
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
