package migrate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
)

const (
	migrationFormat = 1
	movedFormat     = 1
	stateCopying    = "copying"
	stateReady      = "ready"
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
	b, err := vfs.ReadFile(fsys, path, places.NoteMost)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		if err = json.Unmarshal(b, v); err != nil {
			// Nothing else knows what it said, so repair leaves it as it is.
			err = &errs.CorruptionError{Path: name, Offset: -1,
				Err: fmt.Errorf("%w: it says %s; remove it if that was never done here", err, tells(name))}
		}
	}
	if err != nil {
		return false, fmt.Errorf("reading %s: %w", path, err)
	}
	return true, nil
}

// tells is what the store's user has to know of such a file that cannot be read.
func tells(name string) string {
	if name == places.MigrationName {
		return "of which store this is an unfinished copy (memctl migrate, begun again, writes it again)"
	}
	return "where memctl migrate has moved the store"
}

func readMigration(fsys vfs.FS, dir string) (m migration, ok bool, err error) {
	ok, err = readState(fsys, dir, places.MigrationName, &m)
	if err == nil && ok && m.Format > migrationFormat {
		err = &errs.NewerError{Path: filepath.Join(dir, places.MigrationName), Format: uint64(m.Format),
			Reads: migrationFormat}
	}
	return m, ok, err
}

func readMoved(fsys vfs.FS, dir string) (m moved, ok bool, err error) {
	name := places.MovedName
	ok, err = readState(fsys, dir, name, &m)
	if err == nil && !ok {
		name = places.SecondNote
		ok, err = readState(fsys, dir, filepath.FromSlash(name), &m)
	}
	switch {
	case err != nil || !ok:
	case m.Format > movedFormat:
		err = &errs.NewerError{Path: filepath.Join(dir, filepath.FromSlash(name)), Format: uint64(m.Format),
			Reads: movedFormat}
	case m.To == "" || m.ID == uuid.Nil:
		err = &errs.CorruptionError{Path: name, Offset: -1, Err: errors.New("the note does not say where the store is")}
	}
	return m, ok, err
}

// noteTwice writes the note where it is missing. The second one is of no
// use without wal/.
func noteTwice(fsys vfs.FS, dir string, note *moved, mode fs.FileMode) error {
	for _, name := range []string{places.MovedName, filepath.FromSlash(places.SecondNote)} {
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
	if err := vfs.WriteDurable(fsys, filepath.Join(dir, name+".new"), filepath.Join(dir, name), append(b, '\n'),
		mode); err != nil {
		return fmt.Errorf("writing %s: %w", filepath.Join(dir, name), err)
	}
	return nil
}

// Residence reports whether the store of a folder lives there: a *errs.MovedError when it
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
	if m.State == stateReady && !elsewhere(filepath.VolumeName(m.From), filepath.VolumeName(dir)) {
		// The one look outside: at the note in the folder that the copy names, and at nothing else there.
		fsys := vfs.Below(fsys, m.From)
		note, ok, err := readMoved(fsys, m.From)
		if _, ok := errors.AsType[*errs.CorruptionError](err); ok {
			// What migrate.json names may be anything: only the advice on this one is given.
			err = &errs.CorruptionError{Path: places.MigrationName, Offset: -1,
				Err: fmt.Errorf("it names a folder in which %s is no note of memctl migrate; remove %s if nothing was migrated "+
					"to here", places.MovedName, filepath.Join(dir, places.MigrationName))}
		}
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s is the copy of a store that is being moved; %s tells whether it is the store already: %w",
				dir, m.From, err)
		case ok && note.ID == m.ID:
			return func() error { return settle(fsys, m.From, dir) }, nil
		}
	}
	return nil, &repair.UnfinishedError{From: m.From, To: dir}
}

// elsewhere reports whether a volume of Windows is another one's than that of the copy, and named by \\: a host of
// the network, which would be told who looks, or a device. What migrate.json says does not
// lead there; the command that is repeated does.
func elsewhere(volume, of string) bool {
	return strings.HasPrefix(strings.ReplaceAll(volume, `\`, "/"), "//") && !strings.EqualFold(volume, of)
}

// settle ends a migration whose note was found. The process that wrote it may have
// been killed before its name was durable: without it both places would be the store.
func settle(fsys vfs.FS, from, dir string) error {
	if err := fsys.SyncDir(from); err != nil {
		return fmt.Errorf("making the note in %s durable: %w: %w", from, errs.ErrSyncFailed, err)
	}
	return removeState(fsys, dir)
}

// removeState ends a migration in the new place.
func removeState(fsys vfs.FS, dir string) error {
	err := fsys.Remove(filepath.Join(dir, places.MigrationName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return fsys.SyncDir(dir)
}
