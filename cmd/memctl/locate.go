package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/varve-db/varve"
)

const (
	storeVariable = "MEMCTL_STORE"
	storeFolder   = "storage" // what a project's store is called
	configName    = "config.json"
	movedName     = "moved.json" // what a store that was moved away leaves
)

// named is the store that the user named, "" when he did not.
func (a *app) named() string {
	if a.store != "" {
		return a.store
	}
	return a.get(storeVariable)
}

// locate finds the store's folder.
func (a *app) locate() (string, error) {
	if dir := a.named(); dir != "" {
		return dir, nil
	}
	dir, err := a.dir()
	if err != nil {
		return "", fmt.Errorf("finding the current folder: %w", err)
	}
	found, err := nearest(dir)
	if err != nil {
		if served, derr := dataFolder(a.get, runtime.GOOS); derr == nil && isStore(served) {
			err = &fixed{err, "make one with: memctl init DIR; or name one with --store DIR; that of memctl mcp is " + shellQuote(served)}
		}
	}
	return found, err
}

// nearest looks for a store from dir upwards.
func nearest(dir string) (string, error) {
	var searched []string
	for at := dir; ; at = filepath.Dir(at) {
		for _, c := range []string{at, filepath.Join(at, storeFolder)} {
			if isStore(c) {
				return c, nil
			}
			searched = append(searched, c)
		}
		if filepath.Dir(at) == at {
			break
		}
	}
	return "", fmt.Errorf("%w: searched %s, and %s is not set", varve.ErrNoStore, strings.Join(searched, ", "), storeVariable)
}

// isStore knows a store by the member "varve" of its config.json. One whose
// config.json was spoilt still has its log.
func isStore(dir string) bool {
	if _, err := os.Stat(filepath.Join(dir, movedName)); err == nil {
		return true // it was: opening it says where it is now
	}
	f, err := os.Open(filepath.Join(dir, configName))
	if err != nil {
		return false
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err != nil {
		return false
	}
	var members map[string]json.RawMessage
	err = json.Unmarshal(b, &members)
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		_, err := os.Stat(filepath.Join(dir, "wal", "open.lock"))
		return err == nil
	}
	_, ok := members["varve"]
	return ok
}
