package migrate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal"
)

// remove empties the old place, after it has verified the new place again. The note stays in the old place.
func (m *migrate) remove(ctx context.Context) error {
	note, gone, err := readMoved(m.fs, m.s.From)
	if err == nil && (!gone || note.To != m.s.To) {
		err = fmt.Errorf("%s does not record that the store was moved to %s: %w", m.from(places.MovedName), m.s.To,
			errs.ErrInvalid)
	}
	if err != nil {
		return err
	}
	if _, err := m.fs.Stat(m.from("wal")); err == nil {
		release, err := m.alone(ctx)
		if err != nil {
			return err
		}
		defer release()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := m.continues(ctx, &note); err != nil {
		return fmt.Errorf("nothing was removed from %s: %w", m.s.From, err)
	}
	if m.list, err = m.readList(note.ID); err != nil {
		return err
	}
	names, err := places.Names(m.fs, m.s.From)
	if err != nil {
		return err
	}
	m.report.Left = nil
	for i, name := range names {
		m.progress("removing", int64(i), int64(len(names)))
		switch {
		case places.IsTopFile(name), places.IsTopFolder(name):
			err = m.removeRegular(name, 10)
		case name == places.MovedName+".new", name == movedList+".new":
			err = m.fs.Remove(m.from(name))
		case name != places.MovedName && name != movedList:
			m.report.Left = append(m.report.Left, name)
		}
		if err != nil {
			return err
		}
	}
	if err := m.fs.SyncDir(m.s.From); err != nil {
		return err
	}
	if err := m.fs.Remove(m.from(movedList)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := m.fs.SyncDir(m.s.From); err != nil {
		return err
	}
	m.report.Removed = true
	return nil
}

// removeRegular removes files and folders that are proven to be copied. It reports and keeps the others.
func (m *migrate) removeRegular(name string, depth int) error {
	info, err := m.fs.Stat(m.from(name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode.IsRegular():
		moved := ofTheLog(name)
		if !moved {
			if moved, err = m.proven(name, info); err != nil {
				return err
			}
		}
		if moved {
			return m.fs.Remove(m.from(name))
		}
		m.report.Left = append(m.report.Left, filepath.ToSlash(name))
		return nil
	case !info.Mode.IsDir() || depth == 0 || m.newBackup(name):
		m.report.Left = append(m.report.Left, filepath.ToSlash(name))
		return nil
	}
	names, err := places.Names(m.fs, m.from(name))
	if err != nil {
		return err
	}
	left := len(m.report.Left)
	for _, n := range names {
		if err := m.removeRegular(filepath.Join(name, n), depth-1); err != nil {
			return err
		}
	}
	if len(m.report.Left) > left {
		return nil
	}
	return m.fs.Remove(m.from(name))
}

// continues verifies that the new place is a sound store whose log continues the log of the old place.
func (m *migrate) continues(ctx context.Context, note *moved) error {
	if _, err := Residence(m.fs, m.s.To); err != nil {
		return err
	}
	c, err := wal.ReadCheckpoint(m.fs, m.s.To)
	if err != nil {
		return fmt.Errorf("reading the checkpoint of %s: %w", m.s.To, err)
	}
	if c.UUID != note.Store {
		return fmt.Errorf("%s now contains another store: %w", m.s.To, errs.ErrInvalid)
	}
	if old, err := wal.ReadCheckpoint(m.fs, m.s.From); err == nil && old.Attested.LSN > c.Attested.LSN {
		return fmt.Errorf("the log of %s ends at position %d, before the end of the log of %s (%d): %w", m.s.To,
			c.Attested.LSN,
			m.s.From,
			old.Attested.LSN, errs.ErrInvalid)
	}
	return m.s.Sound(ctx)
}

// ofTheLog reports whether a file belongs to the log or its locks. Such a file may be removed without a proof that it
// was copied: a process that began to open the old place may have changed the file since.
func ofTheLog(name string) bool {
	dir, base := filepath.Split(name)
	_, segments := segment.ParseName(base)
	return name == "checkpoint" || places.OfTheMachine(filepath.ToSlash(name)) ||
		filepath.Clean(dir) == "wal" && (base == places.MovedName || base == wal.FeaturesName || segments)
}

// newBackup reports whether a folder is a full backup that the new place does not have. Such a backup was made after
// the switch, although its files may be as old as the memories in them.
func (m *migrate) newBackup(name string) bool {
	if filepath.Dir(name) != "backups" {
		return false
	}
	_, err := m.fs.Stat(m.to(name))
	return errors.Is(err, fs.ErrNotExist)
}
