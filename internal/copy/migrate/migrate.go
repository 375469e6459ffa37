package migrate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/copy/backup"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/wal"
)

// Source has the parameters of a migration. Clock, Random and the modes are used for the new place.
type Source struct {
	FS         vfs.FS
	From, To   string // absolute paths of folders
	FileMode   fs.FileMode
	FolderMode fs.FileMode
	Known      wal.Features // features besides those that package wal knows
	LockWait   time.Duration
	Clock      func() time.Time
	Random     func([]byte) error
	Self       vfs.Users // identifies folders created by this user
	Ignore     string    // lines that .gitignore must have before the switch, so that git ignores the note (moved.json)

	// Switch makes the new place the store. RemoveSource empties the old place after the switch,
	// which may have been made by an earlier run.
	Switch, RemoveSource bool
	// Progress is called from time to time with the name of a step and its progress; total may grow.
	Progress func(step string, done, total int64)

	// Open opens the store in From, and flushes it.
	Open func(ctx context.Context) (backup.Source, func() error, error)
	// Processes returns the processes that have the store in From open.
	Processes func(ctx context.Context) []wal.Attached
	// Sound opens the store in To read-only, and returns an error if it is not sound.
	Sound func(ctx context.Context) error
}

// Run moves a store to another folder; the fields of Source select how far it goes. See the package comment. Run may
// be interrupted at any point, and continues when it is called again.
func Run(ctx context.Context, s Source) (repair.MigrateReport, error) {
	m := &migrate{s: s, fs: s.FS, missing: -1}
	note, gone, err := readMoved(s.FS, s.From)
	switch {
	case err != nil:
		return m.report, err
	case gone && note.To != s.To:
		return m.report, &errs.MovedError{From: s.From, To: note.To, Store: note.Store.String(), When: note.When}
	case gone:
		err = m.finish(ctx, &note)
	default:
		if err = m.apart(); err == nil {
			err = m.run(ctx)
		}
	}
	return m.report, errors.Join(err, m.close())
}

type migrate struct {
	s       Source
	fs      vfs.FS
	live    backup.Source
	lock    vfs.Lock
	barrier vfs.Barrier // syncs a group of files at once; nil: every file is synced
	state   migration
	sums    []uint64        // hashes of the files in the old place that were compared with their copies
	list    map[uint64]bool // hashes of the files that were copied before the switch; nil: unknown
	missing int64           // approximate number of bytes still to be copied, -1 if unknown
	report  repair.MigrateReport
}

func (m *migrate) to(elem ...string) string {
	return filepath.Join(append([]string{m.s.To}, elem...)...)
}

func (m *migrate) from(elem ...string) string {
	return filepath.Join(append([]string{m.s.From}, elem...)...)
}

func (m *migrate) progress(step string, done, total int64) {
	if m.s.Progress != nil {
		m.s.Progress(step, done, total)
	}
}

// apart returns an error if the new place is the same folder as the old place, is inside that folder, or contains that
// folder, by name or through links.
func (m *migrate) apart() error {
	refuse := func(how string) error {
		return fmt.Errorf("%s %s %s: %w → give the path of a folder outside the store",
			m.s.To, how, m.s.From, errs.ErrInvalid)
	}
	source, err := m.fs.Stat(m.s.From + string(filepath.Separator) + ".")
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", m.s.From, errs.ErrNoStore)
	}
	if err != nil {
		return err
	}
	target, terr := m.fs.Stat(m.s.To + string(filepath.Separator) + ".")
	switch {
	case m.s.To == m.s.From || terr == nil && sameFolder(source, target):
		return refuse("is the same folder as")
	case places.Within(m.s.To, m.s.From):
		return refuse("is inside the store")
	case places.Within(m.s.From, m.s.To):
		return refuse("contains the store")
	}
	at := m.s.To
	for terr != nil {
		if !errors.Is(terr, fs.ErrNotExist) || filepath.Dir(at) == at {
			return terr
		}
		at = filepath.Dir(at)
		_, terr = m.fs.Stat(at + string(filepath.Separator) + ".")
	}
	switch in, err := m.under(at, source); {
	case err != nil:
		return err
	case in:
		return refuse("is inside the store")
	case at != m.s.To:
		return nil
	}
	in, err := m.under(m.s.From, target)
	if err == nil && in {
		err = refuse("contains the store")
	}
	return err
}

// under reports whether dir is the folder that the parameter other describes, or is inside that folder, through any
// links: the system resolves dir, and .. leads from there to the folders above.
func (m *migrate) under(dir string, other vfs.Info) (bool, error) {
	at := dir + string(filepath.Separator) + "."
	info, err := m.fs.Stat(at)
	for err == nil {
		if sameFolder(info, other) {
			return true, nil
		}
		at += string(filepath.Separator) + ".."
		below := info
		if info, err = m.fs.Stat(at); info.Ino == 0 || sameFolder(info, below) {
			break // the root
		}
	}
	return false, err
}

func sameFolder(a, b vfs.Info) bool { return a.Ino == b.Ino && a.Dev == b.Dev && a.Ino != 0 }

func (m *migrate) run(ctx context.Context) error {
	if err := m.copyLive(ctx); err != nil {
		return m.explain(err)
	}
	if !m.s.Switch {
		if m.s.RemoveSource {
			return fmt.Errorf("%s is still the store: %w → run the switch first: memctl --store %s migrate "+
				"--to %s --switch --remove-source",
				m.s.From, errs.ErrInvalid, m.s.From, m.s.To)
		}
		return nil
	}
	if err := m.switchOver(ctx); err != nil {
		return m.explain(err)
	}
	if m.s.RemoveSource {
		return m.remove(ctx)
	}
	return nil
}

// copyLive updates the copy up to a recent LSN while the store is in use, and compares the copy with the store.
func (m *migrate) copyLive(ctx context.Context) error {
	live, done, err := m.s.Open(ctx)
	if err != nil {
		return err
	}
	m.live = live
	m.report.Store = live.Log.UUID()
	if err = m.begin(ctx); err == nil {
		err = m.memories(ctx)
	}
	return errors.Join(err, done())
}

// begin creates or continues the copy in the new place, if that is permitted.
func (m *migrate) begin(ctx context.Context) error {
	// An existing folder keeps its owner and its mode: it may still be refused, or be the target of
	// another user's link.
	made, err := vfs.MakeRoot(m.fs, m.s.To, m.s.FolderMode, m.s.Self, m.s.Self.MayFollow(m.fs, m.s.To, m.s.From))
	if err != nil {
		return fmt.Errorf("making %s: %w", m.s.To, err)
	}
	if made {
		if err := vfs.Alike(m.fs, m.s.To, m.s.From); err != nil {
			return fmt.Errorf("giving %s the owner and mode of %s: %w", m.s.To, m.s.From, err)
		}
	}
	if err := m.take(); err != nil {
		return err
	}
	if err := m.loadState(); err != nil {
		return err
	}
	if note, was, err := readMoved(m.fs, m.s.To); err != nil || was && note.Store != m.report.Store {
		if err == nil {
			err = fmt.Errorf("%s has the file moved.json of another store, which was moved from there to %s: %w → "+
				"give the path of a new folder",
				m.s.To,
				note.To, errs.ErrInvalid)
		}
		return err
	}
	if m.state.Lost {
		if err := m.startOver(); err != nil {
			return err
		}
	}
	m.state.State = stateCopying
	if err := writeState(m.fs, m.s.To, places.MigrationName, &m.state, m.s.FileMode); err != nil {
		return err
	}
	// A note here is from an earlier move of this store, which now comes back.
	for _, note := range []string{places.MovedName, filepath.FromSlash(places.SecondNote)} {
		if err := m.fs.Remove(m.to(note)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return m.openBarrier()
}

// startOver removes a copy that may have lost data because a sync failed.
func (m *migrate) startOver() error {
	for _, name := range slices.Concat(places.TopFiles(), places.TopFolders()) {
		if err := m.removeCopy(name); err != nil {
			return err
		}
	}
	m.state.Lost, m.state.LSN = false, 0
	return m.fs.SyncDir(m.s.To)
}

const migrationLock = "migrate.lock"

// take locks the new place against another migration. Before, it checks that the folder is empty or has an unfinished
// migration. migrate.close releases the lock.
func (m *migrate) take() (err error) {
	names, err := vfs.Contents(m.fs, m.s.To)
	if err != nil {
		return fmt.Errorf("examining %s: %w", m.s.To, err)
	}
	// Do not create the lock file in a folder that is in use for something else.
	if _, begun, err := readMigration(m.fs, m.s.To); err != nil {
		return err
	} else if !begun {
		if err := m.empty(names); err != nil {
			return err
		}
	}
	if m.lock, err = m.fs.OpenLock(m.to(migrationLock), m.s.FileMode); err != nil {
		return fmt.Errorf("locking %s: %w", m.s.To, err)
	}
	ok, err := m.lock.TryLock(vfs.ModeExclusive)
	if err == nil && !ok {
		err = &errs.LockError{Path: m.to(migrationLock),
			Err: errors.New("another migration to this folder is in progress → wait until it has ended, or stop it")}
	}
	return err
}

// empty returns an error if a folder has any file other than these: the files that a migration creates before its
// state; the note that this store left when it moved away; and the files of processes that opened the folder
// meanwhile.
func (m *migrate) empty(names []string) error {
	note, was, err := readMoved(m.fs, m.s.To)
	if err != nil {
		return err
	}
	was = was && note.Store == m.report.Store
	for _, name := range names {
		switch {
		case name == migrationLock, name == places.MigrationName+".new", name == places.MovedName:
		case was && places.IsTopFolder(name) && m.bare(name, 3):
		default:
			return fmt.Errorf("%s is not empty (it contains %s) and not an unfinished migration: %w → give the path "+
				"of a new folder", m.s.To,
				human.Quote(name), errs.ErrInvalid)
		}
	}
	return nil
}

// bare reports whether a folder of a store has only folders, locks, and other files that record which processes use
// the store. A process leaves such files if it opened the folder after the store was moved away: it notices the move
// only after it has taken open.lock (wal.Options.Resides).
func (m *migrate) bare(rel string, depth int) bool {
	info, err := m.fs.Stat(m.to(rel))
	if err != nil || !info.Mode.IsDir() || depth == 0 {
		return err == nil && info.Mode.IsRegular() &&
			(places.OfTheMachine(filepath.ToSlash(rel)) || filepath.ToSlash(rel) == places.SecondNote)
	}
	names, err := places.Names(m.fs, m.to(rel))
	return err == nil && !slices.ContainsFunc(names,
		func(name string) bool { return !m.bare(filepath.Join(rel, name), depth-1) })
}

// loadState reads the state of an earlier run, or sets a new state if there was no earlier run. It returns an
// error if the new place has other files, has the unfinished copy of another store, or has become the store.
func (m *migrate) loadState() error {
	state, begun, err := readMigration(m.fs, m.s.To)
	if err != nil {
		return err
	}
	if !begun {
		names, err := vfs.Contents(m.fs, m.s.To)
		if err == nil {
			err = m.empty(names) // another process may have written here before this one had the lock
		}
		if err != nil {
			return err
		}
		id, err := uuid.NewRandomFromReader(randomReader(m.s.Random))
		if err != nil {
			return err
		}
		m.state = migration{Format: migrationFormat, ID: id, Store: m.report.Store, From: m.s.From, Began: m.s.Clock().UTC()}
		return nil
	}
	if state.Store != m.report.Store {
		return fmt.Errorf("%s is the unfinished copy of another store, which is in %s: %w → give the path of a new "+
			"folder", m.s.To,
			state.From, errs.ErrInvalid)
	}
	// If the state is ready and the note in the old place has its id, this folder is the store,
	// although no process has opened it yet. A store with the same UUID elsewhere is an older copy.
	if state.State == stateReady {
		note, gone, err := readMoved(m.fs, state.From)
		if err == nil && gone && note.ID == state.ID {
			err = fmt.Errorf("%s has been the store since it was moved from %s; %s is an older copy: %w", m.s.To, state.From,
				m.s.From, errs.ErrInvalid)
		}
		if err != nil {
			return err
		}
	}
	m.state = state
	m.state.From = m.s.From
	return nil
}

type randomReader func([]byte) error

func (r randomReader) Read(b []byte) (int, error) { return len(b), r(b) }

func (m *migrate) openBarrier() error {
	if m.barrier != nil {
		return nil
	}
	b, err := m.fs.OpenBarrier(m.s.To)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	m.barrier = b
	return err
}

// durable syncs everything that was written to the new place so far.
func (m *migrate) durable() error {
	if m.barrier == nil {
		return nil // each file was synced when it was written
	}
	err := m.barrier.Sync()
	if err != nil {
		err = fmt.Errorf("syncing %s: %w: %w", m.s.To, errs.ErrSyncFailed, err)
		// The system may have dropped the pages and may report the next sync as successful.
		m.state.Lost = true
		err = errors.Join(err, writeState(m.fs, m.s.To, places.MigrationName, &m.state, m.s.FileMode))
	}
	err = errors.Join(err, m.barrier.Close())
	m.barrier = nil
	if err == nil {
		err = m.openBarrier()
	}
	return err
}

func (m *migrate) close() error {
	var err error
	if m.barrier != nil {
		err = m.barrier.Close()
	}
	if m.lock != nil {
		err = errors.Join(err, m.lock.Close())
	}
	return err
}

// explain returns err. If err is about a full disk, the result also has the number of bytes that are needed, and
// explains how to continue.
func (m *migrate) explain(err error) error {
	if !vfs.IsDiskFull(err) {
		return err
	}
	full := vfs.Full(m.fs, m.s.To, fmt.Errorf("%w; the store in %s is unchanged; after making room, run the same "+
		"command again to continue", err,
		m.s.From))
	full.Need = m.missing
	return full
}

// names returns the ids of processes as a list for a message.
func names(list []wal.Attached) string {
	all := make([]string, len(list))
	for i, a := range list {
		all[i] = a.String()
	}
	return strings.Join(all, ", ")
}

// alone locks the old place so that no other process has the store open. release removes the lock.
func (m *migrate) alone(ctx context.Context) (release func(), err error) {
	wait, cancel := context.WithTimeout(ctx, m.s.LockWait)
	defer cancel()
	release, ok, err := wal.LockExclusive(m.fs, m.s.From, m.s.Known, m.s.FileMode,
		func(k vfs.Lock) error { return k.Lock(wait, vfs.ModeExclusive) })
	if err != nil {
		if wait.Err() != nil && ctx.Err() == nil {
			err = &errs.LockError{Path: m.from("wal", "open.lock"), Err: err}
		}
		return nil, err
	}
	if !ok {
		return nil, &errs.LockError{Path: m.from("wal", "attach.lock"),
			Err: fmt.Errorf("other processes have the store open → stop the processes %s, then run the same command again",
				names(m.s.Processes(ctx)))}
	}
	return release, nil
}
