package repair

import (
	"fmt"
	"path/filepath"

	"github.com/google/uuid"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/places"
)

// MigrateReport is the result of a migration.
type MigrateReport struct {
	Store    uuid.UUID
	LSN      uint64 // log position up to which the copy has all changes of memories
	Memories int64  // number of memories in the copy
	Bytes    int64  // size of the memories in the copy
	Copied   int64  // number of memories that this run wrote; the others were copied by an earlier run
	CaughtUp int64  // number of memories in Copied that were written because they changed during the run
	Compared int64  // number of memories whose bytes were compared with those of the store
	Switched bool   // the new folder has become the store
	Removed  bool   // the old folder was emptied: only the note and the files in Left remain there
	Left     []string
	Damaged  []DamagedFile // documents that cannot be read in the old folder: they prevent the switch
}

// UnfinishedError means that the folder To is an unfinished copy of the store From: the migration has not switched to
// this copy, so To is not a store yet. The error matches errs.ErrNoStore.
type UnfinishedError struct{ From, To string }

func (e *UnfinishedError) Error() string {
	return fmt.Sprintf("%v: the folder is the unfinished copy of a store, which is in %s until memctl migrate --switch "+
		"(if that store is lost, removing %s makes a store of what was copied)",
		errs.ErrNoStore, e.From, filepath.Join(e.To, places.MigrationName))
}

// Unwrap makes the error match errs.ErrNoStore.
func (e *UnfinishedError) Unwrap() error { return errs.ErrNoStore }
