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

// migration is the content of migrate.json, the state of an unfinished migration in the new place.
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

// moved is the content of moved.json, the note in the old place with the path of the new place.
type moved struct {
	Format int       `json:"varve_moved"`
	ID     uuid.UUID `json:"id"`
	Store  uuid.UUID `json:"store"`
	To     string    `json:"to"`
	When   time.Time `json:"when"`
}

// readState reads a small JSON file of a migration into v; false if the file does not exist.
func readState(fsys vfs.FS, dir, name string, v any) (bool, error) {
	path := filepath.Join(dir, name)
	b, err := vfs.ReadFile(fsys, path, places.NoteMost)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		if err = json.Unmarshal(b, v); err != nil {
			// The content is not known from anywhere else, so repair cannot restore the file.
			err = &errs.CorruptionError{Path: name, Offset: -1,
				Err: fmt.Errorf("%w; the file records %s; if no store was ever moved here, remove the file",
					err, tells(name))}
		}
	}
	if err != nil {
		return false, fmt.Errorf("reading %s: %w", path, err)
	}
	return true, nil
}

// tells returns a description of what a file with this name records, for a message.
func tells(name string) string {
	if name == places.MigrationName {
		return "of which store this folder is an unfinished copy (a new run of memctl migrate writes the file again)"
	}
	return "to which folder memctl migrate has moved the store"
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
		err = &errs.CorruptionError{Path: name, Offset: -1, Err: errors.New("the file does not contain the path of " +
			"the store's new folder")}
	}
	return m, ok, err
}

// noteTwice writes the note, which has the path of the new place, to two files in the old place: moved.json and
// wal/moved.json. It keeps a file that exists. If the folder wal/ is missing, noteTwice writes only moved.json.
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

// Residence returns an error if the folder does not contain the current store. The error is a *errs.MovedError if
// the store was moved away, and a *repair.UnfinishedError, which matches errs.ErrNoStore, if the folder is the
// copy of an unfinished migration. If the switch was made but the migration was not completed, Residence returns
// the function finish, which completes the migration; otherwise finish is nil.
func Residence(fsys vfs.FS, dir string) (finish func() error, err error) {
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
		// The only file outside of the folder that is read: the note in the folder that
		// migrate.json names.
		fsys := vfs.Below(fsys, m.From)
		note, ok, err := readMoved(fsys, m.From)
		if _, ok := errors.AsType[*errs.CorruptionError](err); ok {
			// migrate.json may name any folder: give advice only about migrate.json.
			err = &errs.CorruptionError{Path: places.MigrationName, Offset: -1,
				Err: fmt.Errorf("the file names a folder in which %s was not written by memctl migrate; remove %s if "+
					"no store was migrated to this folder", places.MovedName, filepath.Join(dir, places.MigrationName))}
		}
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s is the copy of a store that is being moved; whether the move is complete "+
				"could not be read from %s: %w",
				dir, m.From, err)
		case ok && note.ID == m.ID:
			return func() error { return settle(fsys, m.From, dir) }, nil
		}
	}
	return nil, &repair.UnfinishedError{From: m.From, To: dir}
}

// elsewhere reports whether volume, the volume of a Windows path, differs from copyVolume, the volume of the copy,
// and begins with \\. Such a volume is a device, or a network host, which would learn about an access.
// migrate.json may name a folder on such a volume: that folder is not read, and repeating the command completes
// the migration.
func elsewhere(volume, copyVolume string) bool {
	return strings.HasPrefix(strings.ReplaceAll(volume, `\`, "/"), "//") && !strings.EqualFold(volume, copyVolume)
}

// settle completes a migration whose note was found in the old place: it syncs the folder from, the old place, and
// removes migrate.json in the folder dir, the new place. The process that wrote the note may have been killed before
// the rename of the note was durable. Without the sync, a power failure could undo the rename, and then the old place
// and the new place would each be the store.
func settle(fsys vfs.FS, from, dir string) error {
	if err := fsys.SyncDir(from); err != nil {
		return fmt.Errorf("syncing the folder %s: %w: %w", from, errs.ErrSyncFailed, err)
	}
	return removeState(fsys, dir)
}

// removeState removes migrate.json in the new place.
func removeState(fsys vfs.FS, dir string) error {
	err := fsys.Remove(filepath.Join(dir, places.MigrationName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return fsys.SyncDir(dir)
}
