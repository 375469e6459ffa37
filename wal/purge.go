package wal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

// A purge erases the frames of some keys from everything that is kept of the log. First Roll continues the log
// in a new segment; once files and index cover everything before it, no older segment is needed. Then Erase
// archives the older segments, overwrites and removes them, overwrites what follows the tail (recycled files
// have older frames there), and rewrites each copy in the archive that has such frames, with these frames
// erased: positions, chain and the history of all other keys stay. A purge may be killed at any point and
// repeated.

// Roll begins a new segment of the log, unless the newest segment is empty and wal/ended does not name the position at
// which it begins. If wal/ended named the same position twice, a copy of the log in another place could not tell what
// was erased by the first purge from what was erased by the second (see purgefile.Table.Erased). Roll returns when the
// start of the new segment is durable and applied. The caller holds flush.lock.
func (g Purges) Roll(ctx context.Context) error {
	if err := g.l.CatchUp(ctx); err != nil {
		return err
	}
	end, err := g.l.rollOnce(ctx)
	if err != nil {
		return err
	}
	if err := g.l.syncTo(ctx, end); err != nil {
		return err
	}
	return g.l.CatchUp(ctx)
}

func (l *FileLog) rollOnce(ctx context.Context) (LSN, error) {
	if err := l.lock(ctx, roleAppend, vfs.ModeExclusive); err != nil {
		return 0, err
	}
	defer l.unlock(roleAppend)
	if err := errors.Join(l.stillOurs(), l.appendable(ctx)); err != nil {
		return 0, err
	}
	l.state.mu.Lock()
	defer l.state.mu.Unlock()
	tail := l.shared.Tail()
	if err := l.advance(ctx, tail, l.shared.Durable()); err != nil {
		return 0, err
	}
	if err := l.atTail(tail); err != nil {
		return 0, err
	}
	number := l.geo.Number(tail)
	switch l.geo.Offset(tail) {
	case segment.StartSize: // the segment has begun and is empty
		if named, err := l.endedAt(tail); err != nil || !named {
			return tail, err
		}
		number++
	case 0:
	default:
		number++
	}
	before := l.shared.Prepared()
	if err := l.enter(number); err != nil {
		return 0, err
	}
	clock := max(l.now(), l.state.lastTime+1)
	h := segment.Header{Nonce: l.o.Nonce(), Durable: l.shared.Durable(), Time: clock}
	from := l.state.w.At
	g := &group{at: l.geo.Start(number)}
	g.buf = segment.AppendStart(nil, segment.Start{Geometry: l.geo, Number: number, PrevEnd: from.LSN, PrevSum: from.Sum},
		&h)
	g.buf = append(g.buf, make([]byte, segment.HeaderSize)...)
	g.end = Mark{LSN: h.End(), Sum: h.Sum}
	g.entries, g.marks = []Entry{past.EntryIn(&h, nil)}, []Mark{g.end}
	if err := l.put(g); err != nil {
		if l.shared.Prepared() != before {
			l.unprepare(number, before)
		}
		return 0, err
	}
	return g.end.LSN, nil
}

// endedAt reports whether wal/ended names a position. If wal/ended is damaged, it names none: the next record replaces
// all.
func (l *FileLog) endedAt(pos LSN) (bool, error) {
	list, err := l.Past().Endings()
	if errors.Is(err, errs.ErrCorrupt) {
		return false, nil
	}
	return slices.ContainsFunc(list, func(e past.Ending) bool { return e.Next == pos }), err
}

// Purged describes what Erase has erased, and what it could not erase.
type Purged struct {
	Segments int // number of segments that were overwritten and removed
	Copies   int // number of copies in the archive that were rewritten
	Frames   int // number of frames that were erased in copies
	// What was unreadable in segments and copies, and was overwritten: each is a *LostError, or the reason why
	// a copy was removed.
	Lost    []error
	Damaged []error // one error for each copy of a newer format, which was kept
	Unwiped []error // files that were not overwritten, whether they were removed or not: each a *vfs.UnwipedError
}

// Erase erases the frames for which match returns true, in the segments and the archive, below the position
// Spilled. Before the call, the caller must call Roll, bring files and index up to the end of the log, and write
// the checkpoint that records this into both slots. Parts of a segment or a copy that cannot be read are
// overwritten too, and are listed in Lost. Only a copy of a newer format is kept; it is listed in Damaged. While a
// backup copies the log, the error matches errs.ErrLocked.
func (g Purges) Erase(ctx context.Context, held *Held,
	match func(at LSN, key string, value []byte) bool) (p Purged, err error) {
	if err := held.proves(g.l); err != nil {
		return p, err
	}
	ok, err := g.l.locks[roleHold].TryLock(vfs.ModeExclusive)
	if err != nil {
		return p, g.l.ioError("locking", g.l.o.wal(roleNames[roleHold]), err)
	}
	if !ok {
		return p, &errs.LockError{Path: g.l.o.wal(roleNames[roleHold]), Holder: g.l.holder(roleHold),
			Err: fmt.Errorf("one of the processes %v is copying the log for a backup: wait until the backup is "+
				"complete, or end that process, then purge again", g.l.Processes().All())}
	}
	defer g.l.unlock(roleHold)
	// includes the files that the preceding flush has removed
	defer func() { p.Unwiped, g.l.unwiped = append(p.Unwiped, g.l.unwiped...), nil }()
	if err := g.l.wipeSegments(ctx, &p); err != nil {
		return p, err
	}
	if err := g.l.wipeAhead(ctx); err != nil {
		return p, err
	}
	err = g.l.purgeArchive(ctx, match, &p)
	return p, err
}

// wipeSegments archives the segments that the log has released, overwrites them with zeros, and removes them.
func (l *FileLog) wipeSegments(ctx context.Context, p *Purged) error {
	spilled := l.shared.Spilled()
	if spilled == 0 { // another program has overwritten the page
		return l.older()
	}
	end := l.geo.Number(spilled - 1)
	names, err := l.o.FS.ReadDir(l.o.walDir())
	if err != nil {
		return l.ioError("reading", l.o.walDir(), err)
	}
	slices.Sort(names)
	for _, name := range names {
		n, ok := segment.ParseName(name)
		if !ok || n >= end {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		f, err := l.segment(n)
		if err != nil {
			return err
		}
		// A segment without a start was overwritten by an interrupted purge: its copy exists.
		if _, _, err := past.ReadStart(f); !errors.Is(err, segment.ErrEnd) {
			lost, err := l.archiveNaming(ctx, n)
			if p.Lost = append(p.Lost, lost...); err != nil {
				return err
			}
		}
		l.forgetFiles(n + 1)
		if err := vfs.Unwiped(&p.Unwiped, vfs.Wipe(l.o.FS, l.o.wal(name))); err != nil {
			return l.ioError("overwriting", l.o.wal(name), err)
		}
		p.Segments++
	}
	if err := l.o.FS.SyncDir(l.o.walDir()); err != nil {
		return l.ioError("syncing", l.o.walDir(), err)
	}
	return nil
}

// wipeAhead overwrites everything after the tail with zeros, in the segment with the tail and in the segments that were
// prepared. It holds append.lock, so no process writes there at the same time.
func (l *FileLog) wipeAhead(ctx context.Context) error {
	if err := l.lock(ctx, roleAppend, vfs.ModeExclusive); err != nil {
		return err
	}
	defer l.unlock(roleAppend)
	if err := l.stillOurs(); err != nil {
		return err
	}
	tail := l.shared.Tail()
	names, err := l.o.FS.ReadDir(l.o.walDir())
	if err != nil {
		return l.ioError("reading", l.o.walDir(), err)
	}
	slices.Sort(names)
	for _, name := range names {
		n, ok := segment.ParseName(name)
		if !ok || n < l.geo.Number(tail-1) {
			continue
		}
		from := int64(0)
		if n == l.geo.Number(tail-1) {
			from = int64(tail - l.geo.Start(n))
		}
		if err := l.zero(n, from); err != nil {
			return l.ioError("overwriting", l.o.wal(name), err)
		}
	}
	return nil
}

// Suffixes of the files that a purge writes in the archive, and of the files that it has replaced, until they
// are removed.
const (
	purgeSuffix = ".purge"
	purgeAway   = ".away" // suffix of the old copy, if the system cannot exchange names
)

func (l *FileLog) purgeArchive(ctx context.Context, wanted func(at LSN, key string, value []byte) bool,
	p *Purged) error {
	dir := l.o.wal("archive")
	if err := l.clearArchive(dir); err != nil {
		return l.ioError("clearing", dir, err)
	}
	numbers, _, err := l.Past().Archived()
	if err != nil {
		return err
	}
	slices.Sort(numbers)
	var b []byte // buffer for one segment after the other
	for _, n := range numbers {
		if err := ctx.Err(); err != nil {
			return err
		}
		var frames int
		var changed bool
		frames, changed, b, err = l.erased(n, b, wanted)
		if errors.Is(err, past.ErrNoSegment) {
			continue
		}
		if errors.Is(err, errs.ErrNewerFormat) {
			p.Damaged = append(p.Damaged,
				fmt.Errorf("wal/%s may still contain purged data: purge again with the newer version of the program "+
					"that wrote the file: %w", past.CopyName(n), err))
			continue
		}
		if past.IsNoFrame(err) || errors.Is(err, errNotThrough) {
			// The unreadable part may contain what is purged: only the sound part is kept.
			m, merr := l.Archive().Mend(ctx, n)
			if merr == nil && m == nil {
				if err := l.dropCopy(n, p); err != nil {
					return err
				}
				continue
			}
			if err = merr; err == nil {
				b, changed, p.Lost = m.b, true, append(p.Lost, m.Lost...)
				frames, _, _ = eraseFrames(m.geo, n, b, wanted)
			}
		}
		if err != nil {
			return err
		}
		if !changed {
			continue
		}
		if err := l.replaceCopy(n, b); err != nil {
			return l.ioError("rewriting", l.o.wal(past.CopyName(n)), err)
		}
		p.Copies++
		p.Frames += frames
	}
	return nil
}

// dropCopy overwrites and removes the copy of a segment, if no frame in the copy can be read.
func (l *FileLog) dropCopy(number uint64, p *Purged) error {
	name := past.CopyName(number)
	if err := vfs.Unwiped(&l.unwiped, vfs.Wipe(l.o.FS, l.o.wal(name))); err != nil {
		return l.ioError("overwriting", l.o.wal(name), err)
	}
	p.Copies++
	p.Lost = append(p.Lost, &LostError{Path: "wal/" + name, From: l.geo.Start(number), To: l.geo.End(number),
		Err: errNothingSound})
	if err := l.o.FS.SyncDir(l.o.wal("archive")); err != nil {
		return l.ioError("syncing", l.o.wal("archive"), err)
	}
	return nil
}

var errNothingSound = errors.New("the file has no readable frame of the log")

var errPurging = errors.New("another purge is running: wait until it has finished, or end it, then purge again")

// replaceCopy replaces the archived copy of a segment by a copy with the content b, and overwrites the old file. At
// every moment, one of the names that clearArchive knows has a complete copy.
func (l *FileLog) replaceCopy(number uint64, b []byte) error {
	name := l.o.wal(past.CopyName(number))
	made, dir := name+purgeSuffix, l.o.wal("archive")
	old, err := past.OpenCopy(l.o.FS, l.o.walDir(), number)
	if err != nil && !past.IsNoFrame(err) {
		return err
	}
	err = l.writeCopy(made, number, &erasedSegment{bytes.NewReader(b), old})
	if old != nil {
		err = errors.Join(err, old.Close())
	}
	if err != nil {
		return err
	}
	err = l.o.FS.Exchange(made, name)
	away := made
	if errors.Is(err, errors.ErrUnsupported) {
		away = name + purgeAway
		if err = l.o.FS.Rename(name, away); err == nil {
			err = l.o.FS.Rename(made, name)
		}
	}
	if err != nil {
		return err
	}
	if err := l.o.FS.SyncDir(dir); err != nil {
		return err
	}
	if err := vfs.Unwiped(&l.unwiped, vfs.Wipe(l.o.FS, away)); err != nil {
		return err
	}
	return l.o.FS.SyncDir(dir)
}

// cutCopy matches the names of unfinished copies in the archive.
var cutCopy = regexp.MustCompile(`^[0-9]{8,}\.zst\.(new|purge|away)(\.[0-9]+-[0-9]+\.new)?$`)

// clearArchive removes the files that an interrupted purge or an interrupted archiving has left. If a copy was moved to
// a temporary name and not replaced yet, clearArchive moves it back.
func (l *FileLog) clearArchive(dir string) error {
	names, err := l.o.FS.ReadDir(dir)
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		if !cutCopy.MatchString(name) {
			continue // a user's file
		}
		if base, away := strings.CutSuffix(name, purgeAway); away {
			err := l.o.FS.RenameNew(l.o.wal("archive/"+name), l.o.wal("archive/"+base))
			if err == nil {
				continue
			}
			if !errors.Is(err, fs.ErrExist) {
				return err
			}
		}
		if err := vfs.Unwiped(&l.unwiped, vfs.Wipe(l.o.FS, l.o.wal("archive/"+name))); err != nil {
			return err
		}
	}
	return l.o.FS.SyncDir(dir)
}
