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

// Named returns the store that the user named, "" if the user named none.
func (a *App) Named() string {
	if a.Store != "" {
		return a.Store
	}
	return a.Getenv(StoreVariable)
}

// Locate returns the store's folder. A store that belongs to another user, or to which a link
// leads, is used only if it was named.
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
	return dir, a.Admit(locate.DataFolder, dir, "if it is the store that you want, name it: --store "+ShellQuote(dir))
}

// nearest returns the store's folder, and whether a store was found that must not be used.
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
		err = WithFix(err, "if it is the store that you want, name it: --store "+ShellQuote(passed[0].Path))
	case len(passed) > 0:
		err = WithFix(err,
			"if you trust what is in it, name the store of the other user: --store "+ShellQuote(passed[0].Path))
	case derr == nil && IsStore(served):
		err = WithFix(err,
			"create one with memctl init DIR, or name one with --store DIR; the store of memctl mcp is "+ShellQuote(served))
	}
	return found, len(passed) > 0, err
}

// Admit returns an error if a store that was found, or the place for a new one, must not be used; see package locate.
// fix is the remedy.
func (a *App) Admit(way locate.Way, path, fix string) error {
	if p := locate.Self(a.Getenv).Check(way, path); p != nil {
		return WithFix(fmt.Errorf("%s: %w", p.Why(), varve.ErrInvalid), fix)
	}
	return nil
}

// IsStore reports whether a folder is a store, by its content.
func IsStore(dir string) bool { return locate.IsStore(dir) }

// DataFolder returns the default store's folder, within the folder where the user's programs keep
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
