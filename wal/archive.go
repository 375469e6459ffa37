package wal

import (
	"context"
	"errors"
	"io/fs"

	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

// archive copies a segment that the log no longer needs into archive/, and makes the copy durable. Damaged parts
// become gaps in the copy, and an event reports them. If the settings permit no archive, archive copies the segment
// only if a continuous copy of the log in another place still needs it. If the disk is full and removing older copies
// does not help, an event reports that the segment was not archived. The history then lacks old versions, but no
// current memory is lost.
func (l *FileLog) archive(ctx context.Context, number uint64) error {
	_, err := l.archiveNaming(ctx, number)
	return err
}

// archiveNaming is like archive, and also returns a *LostError for each damaged part of the segment.
func (l *FileLog) archiveNaming(ctx context.Context, number uint64) (lost []error, err error) {
	if bytes, _ := l.o.Archive(); bytes > 0 || l.o.Unsent() > 0 && number >= l.unsent() {
		gaps, err := l.copySegment(ctx, number)
		for vfs.IsDiskFull(err) {
			given, gerr := l.cutArchive(number)
			if gerr != nil {
				return nil, gerr
			}
			if !given {
				break
			}
			gaps, err = l.copySegment(ctx, number)
		}
		path := "wal/" + segment.Name(number)
		if lost = lostIn(path, gaps); len(lost) > 0 {
			l.o.Logger.Warn("a damaged segment of the log was archived without its damaged parts", "segment",
				segment.Name(number), "why", lost[0])
			l.o.Event(Event{Kind: EventArchiveGap, Path: path, LSN: gaps[0].At, Err: errors.Join(lost...),
				Note: "archived without the damaged parts"})
		}
		if err != nil {
			_ = l.letGo(l.o.wal(past.CopyName(number)) + ".new")
			if !vfs.IsDiskFull(err) && !errors.Is(err, fs.ErrNotExist) {
				return lost, l.ioError("archiving", l.o.wal(segment.Name(number)), err)
			}
			l.o.Event(Event{Kind: EventArchiveGap, Path: path, Err: err})
			return lost, nil
		}
	}
	return lost, l.keepBudget()
}

// archived reports whether archive/ has a copy of a segment. It returns false if the start frame of the copy differs
// from that of the segment: then the copy is damaged or belongs to an earlier log of this folder, and the caller
// replaces it.
func (l *FileLog) archived(number uint64) bool {
	c, err := past.OpenCopy(l.o.FS, l.o.walDir(), number)
	if err != nil {
		return false
	}
	defer c.Close()
	_, have, err := past.ReadStart(c)
	if err != nil {
		return false
	}
	f, err := l.segment(number)
	if err != nil {
		return true
	}
	_, want, err := past.ReadStart(f)
	return err != nil || have.Sum == want.Sum
}

// putCopy writes src, the content of the segment with the given number, as a copy into archive/. It writes the copy
// under a temporary name, syncs it, and renames it to its final name.
func (l *FileLog) putCopy(number uint64, src past.Source) error {
	name := l.o.wal(past.CopyName(number))
	if err := l.writeCopy(name+".new", number, src); err != nil {
		return err
	}
	if err := l.o.FS.Rename(name+".new", name); err != nil {
		return err
	}
	return l.o.FS.SyncDir(l.o.wal("archive"))
}

// writeCopy writes src, the content of the segment with the given number, as a copy into the file name, and syncs it.
func (l *FileLog) writeCopy(name string, number uint64, src past.Source) error {
	if l.Purges().Overwrites() { // an interrupted copy has left a file of this name
		if err := l.letGo(name); err != nil {
			return err
		}
	}
	out, err := vfs.CreateNew(l.o.FS, name, l.o.FileMode)
	if err != nil {
		return err
	}
	defer out.Close()
	return past.WriteCopy(out, l.geo, number, src)
}
