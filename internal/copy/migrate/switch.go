package migrate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal"
)

// switchOver copies the remaining files while no other process has the store open, compares every byte, and writes the
// note.
func (m *migrate) switchOver(ctx context.Context) error {
	if n := len(m.report.Damaged); n > 0 {
		return fmt.Errorf("%d memories or assemblies cannot be read, the first of them is %s: %w → repair the store before "+
			"it is moved: memctl --store %s repair --apply",
			n, human.Quote(m.report.Damaged[0].ID), errs.ErrCorrupt, m.s.From)
	}
	release, err := m.alone(ctx)
	if err != nil {
		return err
	}
	defer release()
	// Another process may have moved the store while this one waited for open.lock.
	if note, gone, err := readMoved(m.fs, m.s.From); err != nil || gone {
		return errors.Join(err, &errs.MovedError{From: m.s.From, To: note.To, Store: note.Store.String(), When: note.When})
	}
	if err := m.ignore(); err != nil {
		return err
	}
	if err := m.mirror(ctx, false); err != nil {
		return err
	}
	if err := m.durable(); err != nil {
		return err
	}
	if err := m.mirror(ctx, true); err != nil {
		return err
	}
	if err := m.s.Sound(ctx); err != nil {
		return fmt.Errorf("verifying the copy in %s: %w", m.s.To, err)
	}
	c, err := wal.ReadCheckpoint(m.fs, m.s.To)
	if err != nil {
		return err
	}
	if c.UUID != m.report.Store {
		return fmt.Errorf("the copy in %s belongs to another store: %w", m.s.To, errs.ErrCorrupt)
	}
	// The comparison may have written files after the last sync.
	if err := m.durable(); err != nil {
		return err
	}
	if err := m.writeList(); err != nil {
		return err
	}
	m.state.State, m.state.LSN, m.report.LSN = stateReady, c.Attested.LSN, c.Attested.LSN
	if err := writeState(m.fs, m.s.To, places.MigrationName, &m.state, m.s.FileMode); err != nil {
		return err
	}
	note := moved{Format: movedFormat, ID: m.state.ID, Store: m.state.Store, To: m.s.To, When: m.s.Clock().UTC()}
	if err := writeState(m.fs, m.s.From, places.MovedName, &note, m.s.FileMode); err != nil {
		return err
	}
	m.report.Switched = true
	if err := noteTwice(m.fs, m.s.From, &note, m.s.FileMode); err != nil {
		return err
	}
	return m.end()
}

// ignore adds the missing lines to a .gitignore that an older program wrote in the old place. Without these lines git
// would offer moved.json for a commit, and a clone that contains moved.json could not be opened: opening it would
// return an *errs.MovedError.
func (m *migrate) ignore() error {
	name := m.from(".gitignore")
	info, err := m.fs.Stat(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode.IsRegular() {
		return nil
	}
	if err != nil {
		return err
	}
	b, err := vfs.ReadFile(m.fs, name, places.NoteMost)
	if err != nil {
		return err
	}
	was := len(b)
	for want := range strings.Lines(m.s.Ignore) {
		if slices.Contains(strings.Fields(string(b)), strings.TrimSpace(want)) {
			continue
		}
		if len(b) > 0 && b[len(b)-1] != '\n' {
			b = append(b, '\n')
		}
		b = append(b, want...)
	}
	if len(b) == was {
		return nil
	}
	return vfs.WriteDurable(m.fs, m.from("tmp", "gitignore.new"), name, b, info.Mode.Perm())
}

// end removes the files that mark the new place as unfinished.
func (m *migrate) end() error {
	if err := m.fs.Remove(m.to(migrationLock)); err != nil && !errors.Is(err, fs.ErrNotExist) && !vfs.IsPermission(err) {
		return err // on systems that cannot remove an open file, the empty lock file stays
	}
	return removeState(m.fs, m.s.To)
}

// finish continues a migration whose switch was made before.
func (m *migrate) finish(ctx context.Context, note *moved) error {
	m.report.Store, m.report.Switched = note.Store, true
	state, unfinished, err := readMigration(m.fs, m.s.To)
	if err == nil && unfinished && (state.ID != note.ID || state.State != stateReady) {
		err = fmt.Errorf("%s names %s as the new place, but another migration is under way there: %w",
			m.from(places.MovedName), m.s.To, errs.ErrInvalid)
	}
	if err == nil && unfinished {
		err = m.fs.SyncDir(m.s.From) // see settle
	}
	if err == nil {
		err = noteTwice(m.fs, m.s.From, note, m.s.FileMode)
	}
	if err == nil && unfinished {
		err = m.end()
	}
	if c, cerr := wal.ReadCheckpoint(m.fs, m.s.To); err == nil && (cerr != nil || c.UUID != note.Store) {
		m.report.Switched = false
		err = fmt.Errorf("%s names %s as the new place, but the store is not there: %w → check that its disk is mounted",
			m.from(places.MovedName), m.s.To, errors.Join(errs.ErrNoStore, cerr))
	}
	if err == nil && m.s.RemoveSource {
		err = m.apart() // the folders may have been moved since
	}
	if err == nil && m.s.RemoveSource {
		err = m.remove(ctx)
	}
	return err
}
