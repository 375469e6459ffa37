package journal

import (
	"errors"
	"strings"

	"github.com/varve-db/varve/internal/places"
)

// Where a manifest may say that something stood, and where it may say that its bytes
// are now: names of the store, and nothing else.

// placed says why a repair cannot have changed what a path of a manifest names; nil: it can.
func placed(rel string) error {
	if err := places.Local(rel); err != nil {
		return err
	}
	if places.IsChanged(rel) {
		return nil
	}
	at := strings.LastIndexByte(rel, '/')
	switch {
	case at < 0 || !places.IsHolder(rel[:at]):
		return errors.New("a repair changes no such file")
	case rel == "wal/archive" || places.OfTheMachine(rel):
		return errors.New("the file belongs to the processes that have the store open")
	}
	return nil
}

// keptAt says why what was set aside cannot be where a manifest says.
func keptAt(rel string) error {
	if err := places.Local(rel); err != nil {
		return err
	}
	if dir, name, _ := strings.Cut(rel, "/"); dir != "quarantine" || name == "" || strings.Contains(name, "/") {
		return errors.New("what was set aside is in quarantine/")
	}
	return nil
}
