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

// Named returns the path of the store that the user named with --store or VARVE_STORE. If the user named no store, it
// returns "".
func (a *App) Named() string {
	if a.Store != "" {
		return a.Store
	}
	return a.Getenv(StoreVariable)
}

// Locate returns the folder of the store that the command uses. If the user did not name a store, Locate ignores stores
// that belong to another user, and stores to which a link leads.
func (a *App) Locate() (string, error) {
	dir, _, err := a.nearest()
	return dir, err
}

// LocateOrDefault is like Locate, but if Locate finds no store, it returns the default folder of memctl mcp, in which a
// server creates a store. If a store was found that must not be used, it returns an error.
func (a *App) LocateOrDefault() (string, error) {
	dir, passed, err := a.nearest()
	if !errors.Is(err, varve.ErrNoStore) || passed {
		return dir, err
	}
	if dir, err = DataFolder(a.Getenv, runtime.GOOS); err != nil {
		return "", err
	}
	return dir, a.Admit(locate.DataFolder, dir, "to use this store, add --store "+ShellQuote(dir))
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
		err = WithFix(err, "to use this store, add --store "+ShellQuote(passed[0].Path))
	case len(passed) > 0:
		err = WithFix(err,
			"if you trust the contents of the other user's store, add --store "+ShellQuote(passed[0].Path))
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

// ReopenedAs is called when the store's folder was replaced. It prints on stderr that memctl uses the new store, and
// returns the folder of that store. verb is a verb for the message, such as "watches". If there is no new store, the
// error contains replaced, the error that reported the replacement.
func (a *App) ReopenedAs(replaced error, verb string) (dir string, err error) {
	if dir, err = a.Locate(); err != nil {
		return "", errors.Join(replaced, err)
	}
	if !IsStore(dir) {
		return "", replaced
	}
	a.Warn("%v: memctl now %s the store that is in its place", replaced, verb)
	return dir, nil
}

// IsStore reports whether a folder is a store, judging by the files in it.
func IsStore(dir string) bool { return locate.IsStore(dir) }

// DataFolder returns the folder of the default store, which is below the folder where the user's programs keep their
// data.
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
		return "", fmt.Errorf("%w: there is no home folder; give the path of the store with --store or %s",
			varve.ErrNoStore, StoreVariable)
	}
	return filepath.Join(append(base, own)...), nil
}
