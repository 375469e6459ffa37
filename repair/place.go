package repair

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/vector"
)

// Where a manifest may say that something stood, and where it may say that its bytes
// are now: names of the store, and nothing else.

// repaired are the files of a store that a repair changes and that are in none of its
// folders, or in one that holds nothing else of a repair.
var repaired = append([]string{"config.json", "checkpoint", index.BaseName, index.DeltaName}, vector.Files()...)

// besides are the folders in which a repair sets aside whatever stands there, under any
// name of one element, and puts files back.
var besides = []string{migrateMemories, migrateAssemblies, workingFolder, index.BackupsDir, "wal", "wal/archive", vector.Folder}

// placed says why a repair cannot have changed what a path of a manifest names; nil: it can.
func placed(rel string) error {
	if err := inside(rel); err != nil {
		return err
	}
	if slices.Contains(repaired, rel) {
		return nil
	}
	at := strings.LastIndexByte(rel, '/')
	switch {
	case at < 0 || !slices.Contains(besides, rel[:at]):
		return errors.New("a repair changes no such file")
	case rel == "wal/archive" || ofTheMachine(filepath.FromSlash(rel)):
		return errors.New("it belongs to those who have the store open")
	}
	return nil
}

// keptAt says why what was set aside cannot be where a manifest says.
func keptAt(rel string) error {
	if err := inside(rel); err != nil {
		return err
	}
	if dir, name, _ := strings.Cut(rel, "/"); dir != "quarantine" || name == "" || strings.Contains(name, "/") {
		return errors.New("what was set aside is in quarantine/")
	}
	return nil
}

// errUnlikely is for a name that a repair may have met where somebody put it, and that
// Undo gives to nothing: elsewhere its parts are folders.
var errUnlikely = errors.New("it is not a name that a store gives")

// inside says why a path does not name something below the store's folder.
func inside(rel string) error {
	switch {
	case rel == "" || rel == "." || !fs.ValidPath(rel) || !filepath.IsLocal(filepath.FromSlash(rel)):
		return errors.New("it leads out of the store")
	case strings.Contains(rel, "\x00"):
		return errors.New("it has a NUL")
	case strings.Contains(rel, "\\"):
		return errUnlikely
	}
	return nil
}

// enter is the path of a file of the store, whose folders are looked at on the way: a
// link in the place of one would lead somewhere else. ErrNotExist: one is missing.
func enter(fsys vfs.FS, dir, rel string) (string, error) {
	at, rest := dir, rel
	for {
		name, more, ok := strings.Cut(rest, "/")
		if !ok {
			return filepath.Join(at, name), nil
		}
		at, rest = filepath.Join(at, name), more
		info, err := fsys.Stat(at)
		if err != nil {
			return "", err
		}
		if !info.Mode.IsDir() {
			return "", fmt.Errorf("%s is not a folder (%s), and a store follows no links: %w: put a real folder there", shown(rel[:len(rel)-len(more)-1]), info.Mode, errs.ErrInvalid)
		}
	}
}

// shown is a path as a message has it: quoted where a terminal, or a reader, would take
// it for something else.
func shown(rel string) string {
	if q := strconv.Quote(rel); len(rel) > 200 || q[1:len(q)-1] != rel {
		return errs.Quote(rel)
	}
	return rel
}
