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

// LockExclusive takes open.lock and attach.lock in exclusive mode, as a recovery does. No other process can then open
// the store for writing until release is called. ok is false if another process has the store open. The function wait
// must wait for the lock that it gets, open.lock, and take it. If the store has features that are neither in supported
// nor in KnownFeatures, the error is a *errs.FeatureError.
func LockExclusive(fsys vfs.FS, dir string, supported Features, mode fs.FileMode,
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
		err = mayChange(fsys, dir, supported|KnownFeatures)
	}
	if err != nil || !ok {
		release()
		return nil, false, err
	}
	return release, true, nil
}

// folderAlone takes the lock on the store's folder in exclusive mode, as a recovery does. It waits for a process that
// still has an earlier log of this folder open; such a process notices within placeLook that its log is gone. ok
// reports whether the lock was taken. If the system has no such locks, folder is nil and ok is true.
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

// mayChange returns an error if the store in dir has features that are not in supported, or if its features are
// unknown. The features are stored in the checkpoint and in wal/features. It is sufficient if one of the two files can
// be read, or if wal/features does not exist.
func mayChange(fsys vfs.FS, dir string, supported Features) error {
	c, err := readCheckpoint(fsys, dir)
	if errors.Is(err, errs.ErrNewerFormat) {
		return err
	}
	noted, nerr := readFeatures(fsys, dir)
	if err != nil && nerr != nil && !errors.Is(nerr, fs.ErrNotExist) {
		return unknownFeatures(nerr)
	}
	return (c.Features | noted).Lacking(supported, dir, false)
}

// NewSegment creates a segment with which a log begins again, and makes it durable. Like the first segment of a store,
// it does not refer to an earlier one. NewSegment returns the position and the chain hash after the start frame.
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

// NewCheckpoint replaces the checkpoint file by a new file that has c in one slot. The old file may be damaged or
// missing.
func NewCheckpoint(fsys vfs.FS, dir string, c Checkpoint, mode fs.FileMode) error {
	c.Sequence++
	b := make([]byte, 2*slotSize)
	copy(b[int64(c.Sequence%2)*slotSize:], c.encode())
	path := filepath.Join(dir, "checkpoint")
	return vfs.WriteDurable(fsys, filepath.Join(dir, "tmp", "checkpoint.new"), path, b, mode)
}

// Copy copies a segment of the log into the archive, as the release of a segment does.
func (a Archive) Copy(number uint64) error { return a.l.archive(context.Background(), number) }

// Known returns the position up to which the log is known to have been durable, even if the log cannot be read that
// far. It uses the positions that the log has recorded and, if the log is damaged, the frames after the damage.
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

// claimed returns the highest durable position that the frames of a segment record, or the parameter highest if that
// is higher.
func (l *FileLog) claimed(number uint64, highest LSN) (LSN, error) {
	f, err := l.Past().OpenSegment(number)
	if errors.Is(err, fs.ErrNotExist) {
		return highest, nil
	}
	if err != nil {
		return highest, err
	}
	defer f.Close()
	end := l.geo.End(number)
	var b [segment.HeaderSize]byte
	for at := l.geo.Start(number); at < end; {
		if at, err = past.NextHeader(l.geo, f, number, at, end); err != nil || at >= end {
			return highest, err
		}
		n, err := past.ReadFull(f, b[:], l.geo.Offset(at))
		if err != nil {
			return highest, err
		}
		h, err := l.geo.ParseHeader(b[:n], at)
		if err != nil {
			return highest, nil // the segment changes: another process has it open
		}
		highest, at = max(highest, h.Durable), at+8
	}
	return highest, nil
}
