package repair

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/internal/vfs"
)

// The files by which a migration is known; see the package's documentation.
const (
	MigrationName = "migrate.json"
	MovedName     = "moved.json"
)

const (
	migrationFormat = 1
	movedFormat     = 1
	stateCopying    = "copying"
	stateReady      = "ready"
	stateLimit      = 1 << 20
)

// migration is migrate.json.
type migration struct {
	Format int       `json:"varve_migration"`
	ID     uuid.UUID `json:"id"`
	Store  uuid.UUID `json:"store"`
	From   string    `json:"from"`
	Began  time.Time `json:"began"`
	State  string    `json:"state"`
	LSN    uint64    `json:"lsn"`
	Lost   bool      `json:"lost,omitempty"`
}

// moved is moved.json.
type moved struct {
	Format int       `json:"varve_moved"`
	ID     uuid.UUID `json:"id"`
	Store  uuid.UUID `json:"store"`
	To     string    `json:"to"`
	When   time.Time `json:"when"`
}

// readState reads a small JSON file of a migration into v; false when it is not there.
func readState(fsys vfs.FS, dir, name string, v any) (bool, error) {
	path := filepath.Join(dir, name)
	b, err := vfs.ReadFile(fsys, path, stateLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		if err = json.Unmarshal(b, v); err != nil {
			// Nothing else knows what it said, so repair leaves it as it is.
			err = &errs.CorruptionError{Path: name, Offset: -1, Err: fmt.Errorf("%w: it says %s; remove it if that was never done here", err, tells(name))}
		}
	}
	if err != nil {
		return false, fmt.Errorf("reading %s: %w", path, err)
	}
	return true, nil
}

// tells is what the store's user has to know of such a file that cannot be read.
func tells(name string) string {
	if name == MigrationName {
		return "of which store this is an unfinished copy (memctl migrate, begun again, writes it again)"
	}
	return "where memctl migrate has moved the store"
}

func readMigration(fsys vfs.FS, dir string) (m migration, ok bool, err error) {
	ok, err = readState(fsys, dir, MigrationName, &m)
	if err == nil && ok && m.Format > migrationFormat {
		err = &errs.NewerError{Path: filepath.Join(dir, MigrationName), Format: uint64(m.Format), Reads: migrationFormat}
	}
	return m, ok, err
}

// secondNote is where the note stands once more: what git ignores in every store,
// so that cleaning up does not take both.
const secondNote = "wal/" + MovedName

func readMoved(fsys vfs.FS, dir string) (m moved, ok bool, err error) {
	name := MovedName
	ok, err = readState(fsys, dir, name, &m)
	if err == nil && !ok {
		name = secondNote
		ok, err = readState(fsys, dir, filepath.FromSlash(name), &m)
	}
	switch {
	case err != nil || !ok:
	case m.Format > movedFormat:
		err = &errs.NewerError{Path: filepath.Join(dir, filepath.FromSlash(name)), Format: uint64(m.Format), Reads: movedFormat}
	case m.To == "" || m.ID == uuid.Nil:
		err = &errs.CorruptionError{Path: name, Offset: -1, Err: errors.New("it does not say where the store went")}
	}
	return m, ok, err
}

// noteTwice writes the note where it is missing. The second one is of no
// use without wal/.
func noteTwice(fsys vfs.FS, dir string, note *moved, mode fs.FileMode) error {
	for _, name := range []string{MovedName, filepath.FromSlash(secondNote)} {
		_, err := fsys.Stat(filepath.Join(dir, name))
		if err == nil {
			continue
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if _, err := fsys.Stat(filepath.Join(dir, filepath.Dir(name))); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := writeState(fsys, dir, name, note, mode); err != nil {
			return err
		}
	}
	return nil
}

func writeState(fsys vfs.FS, dir, name string, v any, mode fs.FileMode) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := vfs.WriteDurable(fsys, filepath.Join(dir, name+".new"), filepath.Join(dir, name), append(b, '\n'), mode); err != nil {
		return fmt.Errorf("writing %s: %w", filepath.Join(dir, name), err)
	}
	return nil
}

// Residence says whether the store of a folder lives there: a *errs.MovedError when it
// has gone elsewhere, errs.ErrNoStore when the folder is a copy that a migration has not
// finished. done is the way to finish one whose switch has happened; nil: there
// is nothing to do.
func Residence(fsys vfs.FS, dir string) (done func() error, err error) {
	note, gone, err := readMoved(fsys, dir)
	if err != nil {
		return nil, err
	}
	if gone {
		return nil, &errs.MovedError{From: dir, To: note.To, Store: note.Store.String(), When: note.When}
	}
	m, begun, err := readMigration(fsys, dir)
	if err != nil || !begun {
		return nil, err
	}
	if m.State == stateReady {
		switch note, ok, err := readMoved(fsys, m.From); {
		case err != nil:
			return nil, fmt.Errorf("%s is the copy of a store that is moved; whether it already is the store says %s: %w", dir, m.From, err)
		case ok && note.ID == m.ID:
			return func() error { return settle(fsys, m.From, dir) }, nil
		}
	}
	return nil, &UnfinishedError{From: m.From, To: dir}
}

// settle ends a migration whose note was found. Whoever wrote it may have been
// killed before its name was durable: without it both places would be the store.
func settle(fsys vfs.FS, from, dir string) error {
	if err := fsys.SyncDir(from); err != nil {
		return fmt.Errorf("making the note in %s durable: %w: %w", from, errs.ErrSyncFailed, err)
	}
	return removeState(fsys, dir)
}

// removeState ends a migration in the new place.
func removeState(fsys vfs.FS, dir string) error {
	err := fsys.Remove(filepath.Join(dir, MigrationName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return fsys.SyncDir(dir)
}

// UnfinishedError says that a folder is the copy of a store, and none itself: the
// switch is still to come. It matches errs.ErrNoStore.
type UnfinishedError struct{ From, To string }

func (e *UnfinishedError) Error() string {
	return fmt.Sprintf("%v: it is the unfinished copy of a store, which is in %s until memctl migrate --switch (where that is lost for good, removing %s makes a store of what was copied)",
		errs.ErrNoStore, e.From, filepath.Join(e.To, MigrationName))
}

// Unwrap makes the error match errs.ErrNoStore.
func (e *UnfinishedError) Unwrap() error { return errs.ErrNoStore }
