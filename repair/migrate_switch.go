package repair

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal"
)

// What a store consists of.
var (
	storeFiles   = []string{".gitignore", "checkpoint", "memory_index.delta.json", "memory_index.json", "config.json"}
	storeFolders = []string{"assemblies", "backups", "memories", "quarantine", "tmp", "vector_index", "wal", "working"}
)

// ofTheMachine: what says who uses a store, here and now, is not moved.
func ofTheMachine(name string) bool {
	dir, base := filepath.Split(name)
	return filepath.Clean(dir) == "wal" && (base == "shared" || base == "owner" || strings.HasSuffix(base, ".lock"))
}

// switchOver copies what is left while nobody else is there, compares every byte,
// and writes the note.
func (m *migrate) switchOver(ctx context.Context) error {
	if n := len(m.report.Damaged); n > 0 {
		return fmt.Errorf("%d memories cannot be read, the first of them is %s: %w: heal the store before it is moved: memctl --store %s repair --apply",
			n, errs.Quote(m.report.Damaged[0].ID), errs.ErrCorrupt, m.s.From)
	}
	release, err := m.alone(ctx)
	if err != nil {
		return err
	}
	defer release()
	// Whoever was waiting for open.lock before us may have moved it.
	if note, gone, err := readMoved(m.fs, m.s.From); err != nil || gone {
		return errors.Join(err, &errs.MovedError{From: m.s.From, To: note.To, Store: note.Store.String(), When: note.When})
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
		return fmt.Errorf("the copy in %s: %w", m.s.To, err)
	}
	c, err := wal.ReadCheckpoint(m.fs, m.s.To)
	if err != nil {
		return err
	}
	if c.UUID != m.report.Store {
		return fmt.Errorf("the copy in %s is of another store: %w", m.s.To, errs.ErrCorrupt)
	}
	// The sync of the barrier came before what the comparison may have had to write.
	if err := m.durable(); err != nil {
		return err
	}
	m.state.State, m.state.LSN, m.report.LSN = stateReady, c.Attested.LSN, c.Attested.LSN
	if err := writeState(m.fs, m.s.To, MigrationName, &m.state, m.s.FileMode); err != nil {
		return err
	}
	note := moved{Format: movedFormat, ID: m.state.ID, Store: m.state.Store, To: m.s.To, When: m.s.Clock().UTC()}
	if err := writeState(m.fs, m.s.From, MovedName, &note, m.s.FileMode); err != nil {
		return err
	}
	m.report.Switched = true
	return m.end()
}

// end takes away what marks the new place as unfinished.
func (m *migrate) end() error {
	if err := m.fs.Remove(m.to(migrationLock)); err != nil && !errors.Is(err, fs.ErrNotExist) && !vfs.IsPermission(err) {
		return err // where an open file cannot be removed it stays, empty
	}
	return removeState(m.fs, m.s.To)
}

// finish goes on with a migration whose switch has happened.
func (m *migrate) finish(ctx context.Context, note *moved) error {
	m.report.Store, m.report.Switched = note.Store, true
	state, unfinished, err := readMigration(m.fs, m.s.To)
	if err == nil && unfinished && (state.ID != note.ID || state.State != stateReady) {
		err = fmt.Errorf("%s says that the store is in %s, where another migration is under way: %w", m.from(MovedName), m.s.To, errs.ErrInvalid)
	}
	if err == nil && unfinished {
		err = m.end()
	}
	if err == nil && m.s.RemoveSource {
		err = m.remove(ctx)
	}
	return err
}

// mirror makes the rest of the new place equal to the old one, which is at rest.
// What size and time say is equal is taken to be; when bytes are compared, all are.
func (m *migrate) mirror(ctx context.Context, compare bool) error {
	c := &mirror{m: m, ctx: ctx, compare: compare, step: "copying the rest"}
	if compare {
		c.step = "comparing all"
	}
	m.report.Left = nil
	names, err := sortedNames(m.fs, m.s.From)
	if err != nil {
		return err
	}
	for _, name := range names {
		switch {
		case slices.Contains(storeFiles, name):
			err = c.file(name)
		case slices.Contains(storeFolders, name):
			err = c.folder(name, 10)
		case name != MovedName && !strings.HasPrefix(name, MovedName):
			m.report.Left = append(m.report.Left, name)
		}
		if err != nil {
			return err
		}
	}
	mine, err := sortedNames(m.fs, m.s.To)
	if err != nil {
		return err
	}
	for _, name := range mine {
		switch {
		case name == MigrationName, name == migrationLock, slices.Contains(names, name):
			continue
		case slices.Contains(storeFiles, name), slices.Contains(storeFolders, name), temporary(name), name == MigrationName+".new":
			err = removeTree(m.fs, m.to(name), 10)
		default:
			err = fmt.Errorf("%s is not of the store that is moved: %w: take it away", m.to(name), errs.ErrInvalid)
		}
		if err != nil {
			return err
		}
	}
	return m.fs.SyncDir(m.s.To)
}

type mirror struct {
	m       *migrate
	ctx     context.Context
	compare bool
	step    string
	done    int64
}

func sortedNames(fsys vfs.FS, dir string) ([]string, error) {
	names, err := fsys.ReadDir(dir)
	slices.Sort(names)
	return names, err
}

func (c *mirror) folder(name string, depth int) error {
	m := c.m
	if depth == 0 {
		return fmt.Errorf("%s lies too deep: %w", m.from(name), errs.ErrInvalid)
	}
	if info, err := m.fs.Stat(m.from(name)); err != nil {
		return err
	} else if !info.Mode.IsDir() {
		m.report.Left = append(m.report.Left, filepath.ToSlash(name))
		return nil
	}
	if err := vfs.MkdirAll(m.fs, m.to(name), m.s.FolderMode); err != nil {
		return err
	}
	names, err := sortedNames(m.fs, m.from(name))
	if err != nil {
		return err
	}
	keep := map[string]bool{}
	for _, n := range names {
		child := filepath.Join(name, n)
		if ofTheMachine(child) {
			continue
		}
		info, err := m.fs.Stat(m.from(child))
		switch {
		case err != nil:
			return err
		case info.Mode.IsDir():
			err = c.folder(child, depth-1)
		case info.Mode.IsRegular():
			err = c.file(child)
		default:
			m.report.Left = append(m.report.Left, filepath.ToSlash(child))
			continue
		}
		if err != nil {
			return err
		}
		keep[n] = true
	}
	mine, err := sortedNames(m.fs, m.to(name))
	if err != nil {
		return err
	}
	for _, n := range mine {
		if !keep[n] {
			if err := removeTree(m.fs, m.to(name, n), 10); err != nil {
				return err
			}
		}
	}
	return m.fs.SyncDir(m.to(name))
}

// file makes one copy equal.
func (c *mirror) file(name string) error {
	m := c.m
	if err := c.ctx.Err(); err != nil {
		return err
	}
	if c.done++; c.done%heldEvery == 0 {
		m.progress(c.step, c.done, max(c.done, m.live.Count))
	}
	info, err := m.fs.Stat(m.from(name))
	if err != nil {
		return err
	}
	old, err := m.fs.Stat(m.to(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	same := err == nil && old.Mode.IsRegular() && old.Size == info.Size && old.Mtime.Equal(info.Mtime)
	if same && !c.compare {
		return nil
	}
	if same {
		if same, err = m.equal(name); same || err != nil {
			return err
		}
	}
	if err == nil && old.Mode.IsDir() {
		if err := removeTree(m.fs, m.to(name), 10); err != nil {
			return err
		}
	}
	if err := m.copyFile(name, info); err != nil || !c.compare {
		return err
	}
	same, err = m.equal(name)
	if err == nil && !same {
		err = fmt.Errorf("%s does not read back as it was written: %w: is the disk sound?", m.to(name), errs.ErrCorrupt)
	}
	return err
}

func (m *migrate) copyFile(name string, info vfs.Info) error {
	from, err := m.fs.OpenFile(m.from(name), os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer from.Close()
	return m.put(name, info.Mtime, func(to vfs.File) error {
		b := make([]byte, min(1<<20, max(info.Size, 1)))
		for at := int64(0); at < info.Size; {
			n, err := readChunk(from, b, at)
			if err != nil {
				return err
			}
			if n == 0 {
				return fmt.Errorf("%s became shorter: %w", m.from(name), errs.ErrConflict)
			}
			if _, err := to.WriteAt(b[:n], at); err != nil {
				return err
			}
			at += int64(n)
		}
		return nil
	})
}

func readChunk(f io.ReaderAt, b []byte, at int64) (int, error) {
	n, err := f.ReadAt(b, at)
	if err == io.EOF {
		err = nil
	}
	return n, err
}

// equal compares all bytes of a file and its copy.
func (m *migrate) equal(name string) (bool, error) {
	a, err := m.fs.OpenFile(m.from(name), os.O_RDONLY, 0)
	if err != nil {
		return false, err
	}
	defer a.Close()
	b, err := m.fs.OpenFile(m.to(name), os.O_RDONLY, 0)
	if err != nil {
		return false, err
	}
	defer b.Close()
	info, err := a.Stat()
	if err != nil {
		return false, err
	}
	size := min(256<<10, info.Size+1)
	x, y := make([]byte, size), make([]byte, size)
	for at := int64(0); ; {
		n, err := readChunk(a, x, at)
		if err != nil {
			return false, err
		}
		k, err := readChunk(b, y, at)
		if err != nil {
			return false, err
		}
		if !bytes.Equal(x[:n], y[:k]) {
			return false, nil
		}
		if n == 0 {
			return true, nil
		}
		at += int64(n)
	}
}

// remove empties the old place, once the new one was verified again. The note stays.
func (m *migrate) remove(ctx context.Context) error {
	note, gone, err := readMoved(m.fs, m.s.From)
	if err == nil && (!gone || note.To != m.s.To) {
		err = fmt.Errorf("%s does not say that the store was moved to %s: %w", m.from(MovedName), m.s.To, errs.ErrInvalid)
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
	names, err := sortedNames(m.fs, m.s.From)
	if err != nil {
		return err
	}
	m.report.Left = nil
	for i, name := range names {
		m.progress("removing", int64(i), int64(len(names)))
		switch {
		case slices.Contains(storeFiles, name), slices.Contains(storeFolders, name), name == MovedName+".new":
			err = m.removeRegular(name, 10)
		case name != MovedName:
			m.report.Left = append(m.report.Left, name)
		}
		if err != nil {
			return err
		}
	}
	if err := m.fs.SyncDir(m.s.From); err != nil {
		return err
	}
	m.report.Removed = true
	return nil
}

// removeRegular removes files and folders, and leaves what was not moved.
func (m *migrate) removeRegular(name string, depth int) error {
	info, err := m.fs.Stat(m.from(name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode.IsRegular():
		return m.fs.Remove(m.from(name))
	case !info.Mode.IsDir() || depth == 0:
		m.report.Left = append(m.report.Left, filepath.ToSlash(name))
		return nil
	}
	names, err := sortedNames(m.fs, m.from(name))
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

// continues verifies that the new place is the store, sound, and goes on where
// the old one ended.
func (m *migrate) continues(ctx context.Context, note *moved) error {
	if _, err := Residence(m.fs, m.s.To); err != nil {
		return err
	}
	c, err := wal.ReadCheckpoint(m.fs, m.s.To)
	if err != nil {
		return fmt.Errorf("reading the checkpoint of %s: %w", m.s.To, err)
	}
	if c.UUID != note.Store {
		return fmt.Errorf("in %s there is another store now: %w", m.s.To, errs.ErrInvalid)
	}
	if old, err := wal.ReadCheckpoint(m.fs, m.s.From); err == nil && old.Attested.LSN > c.Attested.LSN {
		return fmt.Errorf("the log of %s reaches less far (%d) than that of %s (%d): %w", m.s.To, c.Attested.LSN, m.s.From, old.Attested.LSN, errs.ErrInvalid)
	}
	return m.s.Sound(ctx)
}
