package wal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

// healLimit is the maximum number of segments that one Open restores. After each of them, the log is read again.
const healLimit = 100

// healAll restores damaged segments from their copies in archive/. After each segment it replays the log, until no
// damage is left or the archive has no usable copy. It returns the result of the last replay.
func (l *FileLog) healAll(ctx context.Context, c Checkpoint, attested LSN, end Mark,
	damage *errs.CorruptionError) (Mark, *errs.CorruptionError, error) {
	for n := 0; damage != nil && n < healLimit; n++ {
		from, err := l.heal(ctx, damage)
		if err != nil || from == "" {
			return end, damage, err
		}
		if l.report.Healed == nil {
			l.report.Healed, l.report.HealedFrom = damage, from
		}
		l.report.Replayed, l.report.Bytes = 0, 0
		if err := l.begin(ctx, c.Spilled, Start{Alone: true}); err != nil {
			return end, damage, err
		}
		if end, damage, err = l.replay(ctx, attested, c.Attested); err != nil {
			return end, damage, err
		}
	}
	return end, damage, nil
}

// heal restores one segment from its copy in archive/: the segment with the damage or, if that has no usable copy, the
// next one. The caller holds open.lock, and no other process is attached. heal returns the name of the copy, or "" if
// no copy is usable.
//
// The damaged segment is moved to quarantine/. If the process is killed during heal, at worst the segment is missing.
// The next heal then restores it from the same copy.
func (l *FileLog) heal(ctx context.Context, damage *errs.CorruptionError) (string, error) {
	for _, number := range []uint64{l.geo.Number(damage.LSN), l.geo.Number(damage.LSN) + 1} {
		serves, err := l.copyServes(ctx, number)
		if err != nil || !serves {
			if err == nil || past.IsNoFrame(err) || errors.Is(err, errs.ErrCorrupt) || errors.Is(err, errs.ErrTruncated) {
				continue
			}
			return "", err
		}
		if err := l.putBack(number, damage); err != nil {
			return "", l.ioError("healing", l.o.wal(segment.Name(number)), err)
		}
		name := "wal/" + past.CopyName(number)
		l.o.Logger.Warn("a damaged segment of the log was restored from its copy", "segment", segment.Name(number), "why",
			damage.Err)
		l.o.Event(Event{Kind: EventHealed, Path: "wal/" + segment.Name(number), LSN: damage.LSN, Err: damage,
			Note: "from " + name})
		return name, nil
	}
	return "", nil
}

// copyServes reports whether the copy of a segment in archive/ can replace the segment. The copy must be undamaged,
// belong to this log, and differ from the segment.
func (l *FileLog) copyServes(ctx context.Context, number uint64) (bool, error) {
	c, err := past.OpenCopy(l.o.FS, l.o.walDir(), number)
	if err != nil {
		return false, err
	}
	defer c.Close()
	w := past.NewWalker(l.geo, past.OneSegment(number, c), Mark{})
	_, h, err := w.Start(number)
	if err != nil {
		return false, err
	}
	w.At, w.Linked = Mark{LSN: h.End(), Sum: h.Sum}, true
	for {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		h, _, ferr := w.Frame(l.geo.End(number))
		if err = ferr; err != nil {
			break
		}
		if h.Kind == segment.KindGap { // the copy has no more than the segment
			return false, nil
		}
		if _, _, err = w.Next(l.geo.End(number)); err != nil {
			return false, err
		}
	}
	if w.At.LSN != l.geo.End(number) && !errors.Is(err, segment.ErrEnd) {
		return false, err
	}
	// The log had continued in the next segment when this one was archived: the next segment records where this
	// one ended.
	s, _, err := l.Past().Start(number + 1)
	if err != nil || s.PrevEnd != w.At.LSN || s.PrevSum != w.At.Sum {
		return false, err
	}
	f, err := l.segment(number)
	if errors.Is(err, past.ErrNoSegment) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	differs := false
	err = c.EachBlock(func(b []byte, at int64) error {
		have := make([]byte, len(b))
		n, err := past.ReadFull(f, have, at)
		differs = differs || n < len(b) || string(have) != string(b)
		return err
	})
	return differs, err
}

func (l *FileLog) putBack(number uint64, damage *errs.CorruptionError) error {
	c, err := past.OpenCopy(l.o.FS, l.o.walDir(), number)
	if err != nil {
		return err
	}
	defer c.Close()
	name := l.o.wal(segment.Name(number))
	tmp := name + ".new" // the next recovery removes it
	f, err := vfs.CreateNew(l.o.FS, tmp, l.o.FileMode)
	if err != nil {
		return err
	}
	err = c.EachBlock(func(b []byte, at int64) error {
		_, err := f.WriteAt(b, at)
		return err
	})
	if err == nil {
		err = f.Sync()
	}
	if err2 := f.Close(); err == nil {
		err = err2
	}
	if err != nil {
		return err
	}
	l.forgetFiles(number + 1)
	if _, err := l.o.FS.Stat(name); err == nil {
		why := fmt.Sprintf("this is a damaged segment of the log, which was replaced by its copy wal/%s: %v",
			past.CopyName(number),
			damage)
		if _, err := l.quarantine().File(name, docfile.Note{Why: why, When: l.o.Clock().UTC()}); err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := l.o.FS.RenameNew(tmp, name); err != nil {
		return err
	}
	return l.o.FS.SyncDir(l.o.walDir())
}

// quarantine returns the store's quarantine, a folder to which the log moves files that it cannot use.
func (l *FileLog) quarantine() *docfile.Quarantine {
	return docfile.NewQuarantine(docfile.Layout{FS: l.o.FS, Root: l.o.Dir, FileMode: l.o.FileMode,
		FolderMode: l.o.DirMode}, l.o.Clock)
}
