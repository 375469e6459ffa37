package migrate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/copy/backup"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/wal"
)

const (
	// littleLeft is the number of changed memories below which catching up ends: the switch, or the next run, copies
	// the rest.
	littleLeft = 64
	// catchUps is the maximum number of passes of catching up, in case other processes write faster than this process
	// copies.
	catchUps = 20
	tempMark = ".migrating"
	nameMost = 255 // maximum number of bytes in a file name on the usual file systems
)

// memories copies the memories, catches up with later changes, and compares the copies.
func (m *migrate) memories(ctx context.Context) error {
	if err := m.folder(kind.Memories.Folder); err != nil {
		return err
	}
	at, err := m.pass(ctx, "copying", false)
	if err == nil {
		at, err = m.catchUp(ctx, at)
	}
	if err == nil {
		err = m.settled(at)
	}
	if err == nil {
		at, err = m.pass(ctx, "comparing", true)
	}
	if err == nil {
		at, err = m.catchUp(ctx, at)
	}
	if err == nil {
		err = m.settled(at)
	}
	return err
}

// folder creates a folder in the new place. It returns an error if the folder's place has a link: removing surplus
// files would remove files from the link's target.
func (m *migrate) folder(name string) error {
	if err := vfs.MkdirAll(m.fs, m.to(name), m.s.FolderMode); err != nil {
		return err
	}
	info, err := m.fs.Stat(m.to(name))
	if err == nil && !info.Mode.IsDir() {
		err = fmt.Errorf("%s is not a folder (%s), and a store does not follow links: %w", m.to(name), info.Mode,
			errs.ErrInvalid)
	}
	return err
}

// settled syncs the copy, which includes all changes up to position pos, and records pos in the state of the
// migration.
func (m *migrate) settled(pos wal.LSN) error {
	if err := m.durable(); err != nil {
		return err
	}
	if err := m.fs.SyncDir(m.to(kind.Memories.Folder)); err != nil {
		return fmt.Errorf("syncing %s: %w: %w", m.to(kind.Memories.Folder), errs.ErrSyncFailed, err)
	}
	m.state.LSN, m.report.LSN = pos, pos
	return writeState(m.fs, m.s.To, places.MigrationName, &m.state, m.s.FileMode)
}

// pass visits all memories. It writes the copy of each memory whose size or time differs from the copy's or, if
// compare is true, whose bytes differ. It removes the copies of memories that no longer exist. It returns a log
// position: the copy includes all changes before that position.
func (m *migrate) pass(ctx context.Context, step string, compare bool) (wal.LSN, error) {
	if err := m.live.CatchUp(ctx); err != nil {
		return 0, err
	}
	at := m.live.Log.Applied()
	names, err := m.fs.ReadDir(m.to(kind.Memories.Folder))
	if err != nil {
		return 0, err
	}
	surplus := map[string]bool{}
	for _, n := range names {
		surplus[n] = true
	}
	m.report.Damaged = nil
	var count, size int64
	for id, err := range m.live.Documents[kind.Memories.At].IDs(ctx) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return 0, err
		}
		if count++; count%backup.HeldEvery == 0 {
			m.progress(step, count, max(count, m.live.Count))
		}
		name := kind.Memories.FileName(id)
		n, err := m.memory(ctx, id, name, compare)
		if err != nil {
			// Estimate: as large as the memories so far on average, in blocks of the disk.
			m.missing = max(m.live.Count-count+1, 1) * ((size/count + 4095) / 4096 * 4096)
			return 0, err
		}
		if n >= 0 {
			delete(surplus, name)
			size += n
		} else {
			count--
		}
		if n == unreadable {
			delete(surplus, name) // the copy may be the only good one
		}
	}
	for _, name := range slices.Sorted(maps.Keys(surplus)) {
		rel := kind.Memories.Folder + "/" + name
		if !places.IsName(rel, false) {
			continue // the comparison of the folders decides about it
		}
		if err := m.removeCopy(rel); err != nil {
			return 0, err
		}
	}
	m.report.Memories, m.report.Bytes = count, size
	if compare {
		m.report.Compared = count
		for i := range m.live.Documents {
			if d := &m.live.Documents[i]; d.Kind != kind.Memories {
				if err := m.removeDiffering(ctx, d); err != nil {
					return 0, err
				}
			}
		}
	}
	m.progress(step, count, count)
	return at, nil
}

// unreadable is the size that migrate.memory returns for a memory that cannot be read. If such a memory has a copy,
// the copy stays.
const unreadable = -2

// memory updates the copy of one memory. It returns the memory's size, -1 if the memory does not exist, or unreadable.
func (m *migrate) memory(ctx context.Context, id, name string, compare bool) (int64, error) {
	doc, err := m.live.Documents[kind.Memories.At].Read(ctx, id)
	switch {
	case errors.Is(err, errs.ErrNotFound):
		return -1, nil
	case errors.Is(err, errs.ErrCorrupt):
		m.report.Damaged = append(m.report.Damaged, repair.DamagedFile{ID: id, Why: err.Error()})
		return unreadable, nil
	case err != nil:
		return -1, fmt.Errorf("memory %s: %w", human.Quote(id), err)
	}
	file := m.to(kind.Memories.Folder, name)
	info, err := m.fs.Stat(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return -1, err
	}
	same := err == nil && info.Mode.IsRegular() && info.Size == int64(len(doc.Bytes)) && sameTime(info.Mtime, doc.Time)
	if same && (compare || !info.Mtime.Equal(doc.Time)) {
		b, err := vfs.ReadFile(m.fs, file, places.DocumentMost)
		if err != nil {
			return -1, err
		}
		same = bytes.Equal(b, doc.Bytes)
	}
	if !same {
		m.report.Copied++
		return int64(len(doc.Bytes)), m.write(filepath.Join(kind.Memories.Folder, name), doc.Bytes, doc.Time)
	}
	return int64(len(doc.Bytes)), nil
}

// removeDiffering removes the copies of documents in d that differ from the store's documents although size and
// time are equal. An earlier run made these copies. d has the documents of a kind other than memories. Such kinds
// have few documents, which are copied at the switch. removeDiffering adds damaged documents to the report.
func (m *migrate) removeDiffering(ctx context.Context, d *backup.Documents) error {
	for id, err := range d.IDs(ctx) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		doc, err := d.Read(ctx, id)
		switch {
		case errors.Is(err, errs.ErrNotFound):
			continue
		case errors.Is(err, errs.ErrCorrupt):
			m.report.Damaged = append(m.report.Damaged, repair.DamagedFile{ID: id, In: d.Kind.Folder, Why: err.Error()})
			continue
		case err != nil:
			return fmt.Errorf("%s %s: %w", d.Kind.Noun, human.Quote(id), err)
		}
		path, err := places.Enter(m.fs, m.s.To, d.Kind.File(id))
		var info vfs.Info
		if err == nil {
			info, err = m.fs.Stat(path)
		}
		if places.Gone(err) || err == nil && (!info.Mode.IsRegular() || info.Size != int64(len(doc.Bytes)) ||
			!sameTime(info.Mtime, doc.Time)) {
			continue
		}
		if err != nil {
			return err
		}
		b, err := vfs.ReadFile(m.fs, path, places.DocumentMost)
		if err == nil && !bytes.Equal(b, doc.Bytes) {
			err = m.fs.Remove(path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// catchUp copies the memories that the log records as changed since position pos. It repeats this for the memories
// that were changed in the meantime, until few are left or catchUps passes were made. If the log no longer has a part
// of the entries, catchUp visits all memories. It returns the position up to which the copy includes all changes.
func (m *migrate) catchUp(ctx context.Context, pos wal.LSN) (wal.LSN, error) {
	for range catchUps {
		if err := m.live.CatchUp(ctx); err != nil {
			return pos, err
		}
		to := m.live.Log.Applied()
		if to <= pos {
			break
		}
		ids := map[string]bool{}
		var err error
		for e, eerr := range m.live.Log.Past().Entries(ctx, wal.Mark{LSN: pos}, to) {
			if err = eerr; err != nil {
				break
			}
			if kind.Of(e.Key) == kind.Memories {
				ids[e.Key[1:]] = true
			}
		}
		if errors.Is(err, errs.ErrTruncated) || errors.Is(err, errs.ErrCorrupt) {
			if pos, err = m.pass(ctx, "copying", false); err != nil {
				return pos, err
			}
			continue
		}
		if err != nil {
			return pos, err
		}
		for _, id := range slices.Sorted(maps.Keys(ids)) {
			if err := m.changed(ctx, id); err != nil {
				return pos, err
			}
		}
		pos = to
		if len(ids) < littleLeft {
			break
		}
	}
	return pos, nil
}

// coarsest is the resolution of the times of files on the coarsest file systems.
const coarsest = 2 * time.Second

// sameTime reports whether the time of a copy may be the result of setting it to want: some file systems keep only
// whole seconds, or only even ones. Equal times do not prove equal contents; the caller compares the bytes.
func sameTime(copied, want time.Time) bool {
	return copied.Equal(want) || copied.Nanosecond() == 0 && copied.Before(want) && want.Sub(copied) < coarsest
}

// changed updates the copy of a memory that was written or deleted during the copying, and updates the counts.
func (m *migrate) changed(ctx context.Context, id string) error {
	name := kind.Memories.FileName(id)
	old, err := m.fs.Stat(m.to(kind.Memories.Folder, name))
	had := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	before := m.report.Copied
	n, err := m.memory(ctx, id, name, false)
	if err != nil || n == unreadable {
		return err
	}
	m.report.CaughtUp += m.report.Copied - before
	if had {
		m.report.Memories--
		m.report.Bytes -= old.Size
	}
	if n >= 0 {
		m.report.Memories++
		m.report.Bytes += n
		return nil
	}
	if had {
		return m.fs.Remove(m.to(kind.Memories.Folder, name))
	}
	return nil
}

// write writes a file of the copy under a temporary name, and then renames it, which replaces an existing file.
func (m *migrate) write(name string, data []byte, mtime time.Time) error {
	return m.put(name, mtime, func(f vfs.File) error {
		_, err := f.WriteAt(data, 0)
		return err
	})
}

func (m *migrate) put(name string, mtime time.Time, fill func(vfs.File) error) error {
	path := m.to(name)
	temp := path + tempMark
	if filepath.Dir(name) == kind.Memories.Folder || len(filepath.Base(temp)) > nameMost {
		temp = m.to(places.MigrationName + tempMark) // the file's name may be too long for the suffix
	}
	if err := m.fs.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := m.fs.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, m.s.FileMode)
	if err != nil {
		return err
	}
	err = fill(f)
	if err == nil {
		err = f.SetMtime(mtime)
	}
	if err == nil && m.barrier == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = m.fs.Rename(temp, path)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// removeCopy removes a file or folder from the copy, which has the mark of this migration. It removes only files and
// folders with names that a store uses; in folders in which a user may choose the names, it removes everything except
// mounts and links.
func (m *migrate) removeCopy(rel string) error {
	return vfs.RemoveKnown(m.fs, m.to(filepath.FromSlash(rel)), func(below string, folder bool) bool {
		name := path.Join(rel, below)
		switch top, _, in := strings.Cut(name, "/"); {
		case in && (top == "quarantine" || top == index.BackupsDir || top == "tmp"):
			return true
		}
		return places.IsName(strings.TrimSuffix(name, tempMark), folder)
	})
}

// temporary reports whether a name is that of a temporary file of a migration.
func temporary(name string) bool { return strings.HasSuffix(name, tempMark) }
