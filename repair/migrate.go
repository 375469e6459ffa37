package repair

import (
	"fmt"
	"path/filepath"

	"github.com/google/uuid"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/places"
)

// MigrateReport reports what a migration did.
type MigrateReport struct {
	Store    uuid.UUID
	LSN      uint64 // up to where the copy has the memories
	Memories int64  // in the copy
	Bytes    int64  // in them
	Copied   int64  // memories that this run wrote; the others were there
	CaughtUp int64  // of them because they were written meanwhile
	Compared int64  // memories whose bytes were compared with the store's
	Switched bool   // the new place is the store
	Removed  bool   // the old one holds the note only, and Left
	Left     []string
	Damaged  []DamagedFile // cannot be read where they are: they keep the store from being switched
}

// UnfinishedError says that a folder is the copy of a store, and none itself: the
// switch is still to come. It matches errs.ErrNoStore.
type UnfinishedError struct{ From, To string }

func (e *UnfinishedError) Error() string {
	return fmt.Sprintf("%v: the folder is the unfinished copy of a store, which is in %s until memctl migrate --switch "+
		"(if that store is lost, removing %s makes a store of what was copied)",
		errs.ErrNoStore, e.From, filepath.Join(e.To, places.MigrationName))
}

// Unwrap makes the error match errs.ErrNoStore.
func (e *UnfinishedError) Unwrap() error { return errs.ErrNoStore }
