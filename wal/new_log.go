package wal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

// Functions with which repair replaces a log that cannot be read to its end. No other process may have the log
// open: the caller holds the locks of LockExclusive.

// LockExclusive takes open.lock and attach.lock exclusively, as a recovery does, so that no other process can
// open the store for writing until release is called. ok is false if another process has the store open. wait
// is called to wait for open.lock. If the store has features that are not in known, the error is
// *errs.FeatureError.
func LockExclusive(fsys vfs.FS, dir string, known Features, mode fs.FileMode,
	wait func(vfs.Lock) error) (release func(), ok bool, err error) {
	var held []vfs.Lock
	release = func() {
		for i := len(held) - 1; i >= 0; i-- {
			_ = held[i].Close()
		}
	}
	take := func(name string, try func(vfs.Lock) (bool, error)) (bool, error) {
		k, err := fsys.OpenLock(filepath.Join(dir, "wal", name), mode)
		if err != nil {
			return false, fmt.Errorf("opening wal/%s: %w", name, err)
		}
		held = append(held, k)
		return try(k)
	}
	d, err := dwells(fsys, dir, mode)
	if err == nil && d.astray() {
		return nil, false, d.error(dir)
	}
	ok, err = take(roleNames[roleOpen], func(k vfs.Lock) (bool, error) { return true, wait(k) })
	if err == nil {
		ok, err = take(roleNames[roleAttach], func(k vfs.Lock) (bool, error) { return k.TryLock(vfs.ModeExclusive) })
	}
	if err == nil && ok {
		var folder vfs.FolderLock
		if folder, ok, err = folderAlone(fsys, dir); folder != nil {
			unlock := release
			release = func() { _ = folder.Close(); unlock() }
		}
	}
	if err == nil && ok {
		err = mayChange(fsys, dir, known|KnownFeatures)
	}
	if err != nil || !ok {
		release()
		return nil, false, err
	}
	return release, true, nil
}

// folderAlone takes the lock on the store's folder exclusively, as a recovery does. It waits for a process that
// still has an earlier log of this folder open; such a process notices within placeLook that its log is gone.
// On systems without such locks, folder is nil and ok is true. Otherwise ok reports whether the lock was taken.
func folderAlone(fsys vfs.FS, dir string) (folder vfs.FolderLock, ok bool, err error) {
	folder, err = vfs.OpenFolderLock(fsys, dir)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("opening %s: %w", dir, err)
	}
	wait, cancel := context.WithTimeout(context.Background(), 2*placeLook)
	defer cancel()
	if ok, err = vfs.WaitFolder(wait, folder, vfs.ModeExclusive); ok {
		return folder, true, nil
	}
	return nil, err != nil, folder.Close() // an error means a file system without such locks
}

// mayChange returns an error if the store in dir has features that are not in known. It ignores an unreadable
// checkpoint if wal/features can be read or does not exist, and an unreadable wal/features if the checkpoint, which
// has the features, too, can be read.
func mayChange(fsys vfs.FS, dir string, known Features) error {
	c, err := readCheckpoint(fsys, dir)
	if errors.Is(err, errs.ErrNewerFormat) {
		return err
	}
	noted, nerr := readFeatures(fsys, dir)
	if err != nil && nerr != nil && !errors.Is(nerr, fs.ErrNotExist) {
		return unknownFeatures(nerr)
	}
	return (c.Features | noted).Lacking(known, dir, false)
}

// NewSegment creates a segment that restarts a log, and makes it durable. Like the first segment of a store,
// it refers to nothing before it. NewSegment returns the position and chain hash after the start frame.
func NewSegment(fsys vfs.FS, dir string, g segment.Geometry, number uint64, h segment.Header,
	mode fs.FileMode) (Mark, error) {
	b := segment.AppendStart(nil, segment.Start{Geometry: g, Number: number}, &h)
	end := Mark{LSN: h.End(), Sum: h.Sum}
	b = append(b, make([]byte, 4096-len(b))...)
	name := filepath.Join(dir, "wal", segment.Name(number))
	if _, err := fsys.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		return end, fmt.Errorf("making wal/%s: %w", segment.Name(number), errors.Join(err, fs.ErrExist))
	}
	return end, vfs.WriteDurable(fsys, filepath.Join(dir, "wal", fmt.Sprintf("%d-renew.new", fsys.Host().PID)), name, b,
		mode)
}

// NewCheckpoint replaces the checkpoint file, whatever it contains, by a new file with c in one slot.
func NewCheckpoint(fsys vfs.FS, dir string, c Checkpoint, mode fs.FileMode) error {
	c.Sequence++
	b := make([]byte, 2*slotSize)
	copy(b[int64(c.Sequence%2)*slotSize:], c.encode())
	path := filepath.Join(dir, "checkpoint")
	return vfs.WriteDurable(fsys, filepath.Join(dir, "tmp", "checkpoint.new"), path, b, mode)
}

// Copy copies a segment of the log into the archive, as the release of a segment does.
func (a Archive) Copy(number uint64) error { return a.l.archive(number) }

// Known returns the position up to which the log is known to have been durable, even if it cannot be read that
// far. It uses the positions that the log has recorded and, after damage, the frames that follow the damage.
func (l *FileLog) Known() (LSN, error) {
	known := max(l.Durable(), l.unmarked)
	if l.shared.Mapped() && l.shared.OfBoot(l.host) {
		known = max(known, l.shared.Durable())
	}
	d := l.Damage()
	if d == nil {
		return known, nil
	}
	names, err := l.o.FS.ReadDir(l.o.walDir())
	if err != nil {
		return known, l.ioError("reading", l.o.walDir(), err)
	}
	for _, name := range names {
		if number, ok := segment.ParseName(name); ok && number >= d.Segment {
			if known, err = l.claimed(number, known); err != nil {
				return known, err
			}
		}
	}
	return known, nil
}

// Marks returns the checkpoint with which the log was opened; without a checkpoint, it returns the positions
// that the segments record.
func (l *FileLog) Marks() Checkpoint { return l.marks }

// claimed returns the highest durable position that the frames of a segment record, or most if that is higher.
func (l *FileLog) claimed(number uint64, most LSN) (LSN, error) {
	f, err := l.Past().OpenSegment(number)
	if errors.Is(err, fs.ErrNotExist) {
		return most, nil
	}
	if err != nil {
		return most, err
	}
	defer f.Close()
	end := l.geo.End(number)
	var b [segment.HeaderSize]byte
	for at := l.geo.Start(number); at < end; {
		if at, err = past.NextHeader(l.geo, f, number, at, end); err != nil || at >= end {
			return most, err
		}
		n, err := past.ReadFull(f, b[:], l.geo.Offset(at))
		if err != nil {
			return most, err
		}
		h, err := l.geo.ParseHeader(b[:n], at)
		if err != nil {
			return most, nil // the segment changes: another process has it open
		}
		most, at = max(most, h.Durable), at+8
	}
	return most, nil
}
