package repair

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/varve-db/varve/index"
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
