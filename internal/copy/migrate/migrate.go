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

// Source is what a migration works with. Clock, Random and the modes are
// those of the new place.
type Source struct {
	FS         vfs.FS
	From, To   string // folders, absolute
	FileMode   fs.FileMode
	FolderMode fs.FileMode
	Known      wal.Features // besides those that package wal knows
	LockWait   time.Duration
	Clock      func() time.Time
	Random     func([]byte) error
	Self       vfs.Users // whose folders are this user's own
	Ignore     string    // lines that a store's .gitignore is to have by then, so that git leaves the note alone

	// Switch makes the new place the store; RemoveSource empties the old one, when that
	// has happened, now or before.
	Switch, RemoveSource bool
	// Progress hears now and then how much of how much of a step is done; total may grow.
	Progress func(step string, done, total int64)

	// Open opens the store in From; its files were just flushed when it returns.
	Open func(ctx context.Context) (backup.Source, func() error, error)
	// Processes are those that have the store in From open.
	Processes func(ctx context.Context) []wal.Attached
	// Sound opens what is in To, changes nothing, and says what is not sound in it.
	Sound func(ctx context.Context) error
}

// Run brings a store to another folder, as far as it is told to; see the
// package's documentation. It may end anywhere, and goes on when it is called again.
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
	barrier vfs.Barrier // nil: every file is synced
	state   migration
	sums    []uint64        // of what was compared
	list    map[uint64]bool // of what was copied when the store was switched; nil: unknown
	missing int64           // about how many bytes are still to be copied, -1 when unknown
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

// apart refuses a new place that is the old one, or in it, or around it, by name
// or through links.
func (m *migrate) apart() error {
	refuse := func(how string) error {
		return fmt.Errorf("%s %s %s: %w: name a folder outside of it", m.s.To, how, m.s.From, errs.ErrInvalid)
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
		return refuse("lies within the store")
	case places.Within(m.s.From, m.s.To):
		return refuse("holds the store")
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
		return refuse("lies within the store")
	case at != m.s.To:
		return nil
	}
	in, err := m.under(m.s.From, target)
	if err == nil && in {
		err = refuse("holds the store")
	}
	return err
}

// under reports whether a folder lies in another, or is it, wherever links lead: the
// system follows them, and then goes up from where it is.
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
			return fmt.Errorf("%s is still the store: %w: it can be emptied only after the switch: memctl --store %s migrate "+
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

// copyLive brings the copy up to a recent LSN, and compares it, while the store is in use.
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

// begin takes the new place, if it may.
func (m *migrate) begin(ctx context.Context) error {
	// A folder that was there keeps its owner and its mode: it may be refused, or be one that a link
	// of somebody else leads to.
	made, err := vfs.MakeRoot(m.fs, m.s.To, m.s.FolderMode, m.s.Self, m.s.Self.MayFollow(m.fs, m.s.To, m.s.From))
	if err != nil {
		return fmt.Errorf("making %s: %w", m.s.To, err)
	}
	if made {
		if err := vfs.Alike(m.fs, m.s.To, m.s.From); err != nil {
			return fmt.Errorf("making %s as %s is: %w", m.s.To, m.s.From, err)
		}
	}
	if err := m.take(); err != nil {
		return err
	}
	if err := m.own(); err != nil {
		return err
	}
	if note, was, err := readMoved(m.fs, m.s.To); err != nil || was && note.Store != m.report.Store {
		if err == nil {
			err = fmt.Errorf("%s holds the note that another store went from there to %s: %w: name a new folder", m.s.To,
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
	// A note here is of the time before: the store was here, and comes back.
	for _, note := range []string{places.MovedName, filepath.FromSlash(places.SecondNote)} {
		if err := m.fs.Remove(m.to(note)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return m.openBarrier()
}

// startOver clears the copy of which a sync failed.
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

// take locks the new place against another migration; close lets it go.
func (m *migrate) take() (err error) {
	names, err := vfs.Contents(m.fs, m.s.To)
	if err != nil {
		return fmt.Errorf("looking at %s: %w", m.s.To, err)
	}
	// Not a file of ours in what is somebody else's.
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
			Err: errors.New("another migration to this folder is under way: wait for it or end it")}
	}
	return err
}

// empty refuses a folder with anything in it but what a migration has before its state is durable, or what
// this store left here when it moved away: the note, and what processes made that opened it meanwhile.
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
			return fmt.Errorf("%s is not empty (it holds %s) and no unfinished migration: %w: name a new folder", m.s.To,
				human.Quote(name), errs.ErrInvalid)
		}
	}
	return nil
}

// bare reports whether a folder of a store has nothing in it but folders, locks, and other files that tell
// which processes use a store: so leaves it a process that opened the store while it was moved away, and
// found that under open.lock (wal.Options.Resides).
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

// own reads the state of an earlier run, or makes one.
func (m *migrate) own() error {
	state, begun, err := readMigration(m.fs, m.s.To)
	if err != nil {
		return err
	}
	if !begun {
		names, err := vfs.Contents(m.fs, m.s.To)
		if err == nil {
			err = m.empty(names) // somebody may have come before the lock was had
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
		return fmt.Errorf("%s is the unfinished copy of another store, the one in %s: %w: name a new folder", m.s.To,
			state.From, errs.ErrInvalid)
	}
	// Ready, and the place it was copied from says so: it is the store, though nobody has opened it
	// yet. A store with the same UUID now is an older copy of it.
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

// durable makes everything durable that was written so far.
func (m *migrate) durable() error {
	if m.barrier == nil {
		return nil // each file was synced
	}
	err := m.barrier.Sync()
	if err != nil {
		err = fmt.Errorf("syncing %s: %w: %w", m.s.To, errs.ErrSyncFailed, err)
		// Pages that look clean and are not: no later sync would tell.
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

// explain says of a full disk what would help.
func (m *migrate) explain(err error) error {
	if !vfs.IsDiskFull(err) {
		return err
	}
	full := vfs.Full(m.fs, m.s.To, fmt.Errorf("%w; the store in %s is as it was; the same command continues", err,
		m.s.From))
	full.Need = m.missing
	return full
}

// names are processes in a sentence.
func names(list []wal.Attached) string {
	all := make([]string, len(list))
	for i, a := range list {
		all[i] = a.String()
	}
	return strings.Join(all, ", ")
}

// alone takes the old place for ourselves.
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
			Err: fmt.Errorf("the switch needs the store for itself: stop the processes %s, then run the same command again",
				names(m.s.Processes(ctx)))}
	}
	return release, nil
}
