package wal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sort"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/page"
	"github.com/varve-db/varve/wal/past"
)

// recover reads the log to its end and makes the end durable. No other process has the log open; the caller holds
// open.lock, and attach.lock in exclusive mode.
//
// recover first marks the shared page as not recovered, and reads the frames from the position Spilled to the end. The
// frames above the attested position (Checkpoint.Attested) may be only in the page cache, so recover writes them again
// in place and syncs them: otherwise a power loss could remove entries that were already read. Last, it sets the
// positions in the page and then the new generation, which marks the page as recovered.
func (l *FileLog) recover(ctx context.Context) error {
	if err := l.takePage(); err != nil {
		return err
	}
	c, fresh, err := l.origin()
	if err == nil {
		err = l.admit(l.required)
	}
	if err != nil {
		return err
	}
	if fresh {
		return l.create(ctx, c.Spilled.LSN > 0, c.Spilled.LSN == 0 && c.Attested.LSN > 0)
	}
	l.mendEnded(c.Attested.LSN)
	if !l.was.sound(l.geo) {
		l.o.Logger.Warn("ignoring wal/shared: inconsistent positions", "durable", l.was.durable, "tail", l.was.tail,
			"flushed", l.was.flushed, "spilled", l.was.spilled)
		l.was = before{}
	}
	l.report.Recovered, l.report.Flushed, l.report.Mtimes = true, c.Flushed.LSN, c.Mtimes
	l.state.lastTime = c.Time
	attested := max(c.Attested.LSN, l.was.durable, l.unmarked)
	if err := l.begin(ctx, c.Spilled, Start{Alone: true}); err != nil {
		return err
	}
	end, damage, err := l.replay(ctx, attested, c.Attested)
	if err != nil {
		return err
	}
	if end, damage, err = l.healAll(ctx, c, attested, end, damage); err != nil {
		return err
	}
	if damage != nil && damage.LSN < c.Flushed.LSN && c.Spilled.LSN < c.Flushed.LSN {
		// Nothing is lost: below flushed the files are authoritative. The index is rebuilt from them, and the
		// log is read from there.
		l.report.Healed, l.report.HealedFrom = damage, ""
		c.Spilled = c.Flushed
		if err := l.begin(ctx, c.Spilled, Start{Alone: true, Rebuild: true}); err != nil {
			return err
		}
		if end, damage, err = l.replay(ctx, attested, c.Attested); err != nil {
			return err
		}
	}
	if damage != nil {
		return l.openDamaged(c, end, attested, damage)
	}
	if err := l.agrees(end); err != nil {
		l.o.Logger.Warn("the index belongs to another log and is rebuilt from the document files", "err", err)
		if err := l.begin(ctx, c.Spilled, Start{Alone: true, Rebuild: true}); err != nil {
			return err
		}
		if end, _, err = l.replay(ctx, attested, c.Attested); err != nil {
			return err
		}
	}
	l.report.Clean = end.LSN == c.Attested.LSN && end.LSN == c.Flushed.LSN && l.report.TornTail == nil &&
		l.report.Healed == nil
	if l.report.Clean && c.Sequence > 0 {
		// The log ends where the checkpoint attests it: the end was synced before the checkpoint was written,
		// nothing follows it, and nothing needs to be recorded. A checkpoint that bySegments made from the
		// segments attests nothing yet.
		return l.publish(end, c, page.Healthy)
	}
	if err := l.settleEnd(ctx, c.Attested, end); err != nil {
		return err
	}
	c.Attested = end
	if err := l.putCheckpoint(c); err != nil {
		return err
	}
	l.o.Event(Event{Kind: EventRecovered, LSN: end.LSN, Bytes: l.report.Bytes})
	return l.publish(end, c, page.Healthy)
}

// agrees calls Machine.Agrees, which returns an error if the loaded views belong to another log. end is the mark at
// the end of this log.
func (l *FileLog) agrees(end Mark) error {
	return l.o.Machine.Agrees(end, func(at LSN) (uint64, bool) {
		if at == end.LSN {
			return end.Sum, true
		}
		m, err := l.MarkBefore(context.Background(), at)
		return m.Sum, err == nil
	})
}

// origin determines the identity of the log and the positions from which it is read. It uses the checkpoint or, if the
// checkpoint is missing or wrong, the segments. fresh reports whether there is no log.
//
// A checkpoint is ignored if its log no longer exists. Then wal/ was lost, and perhaps created again by a process that
// was killed before it could record this. But a segment that cannot be read never counts as missing. The store has the
// features in both slots of the checkpoint, even if the checkpoint is ignored, and those in wal/features.
func (l *FileLog) origin() (c Checkpoint, fresh bool, err error) {
	c, fresh, err = l.findMarks()
	l.marks = c
	return c, fresh, err
}

func (l *FileLog) findMarks() (c Checkpoint, fresh bool, err error) {
	path := filepath.Join(l.o.Dir, "checkpoint")
	c, err = readCheckpoint(l.o.FS, l.o.Dir)
	if err != nil && !errors.Is(err, errSlot) {
		return c, false, l.ioError("reading", path, err)
	}
	known := err == nil
	l.required = c.Features
	segments, broken, err := l.list()
	if err != nil {
		return c, false, err
	}
	if err := l.noted(known); err != nil {
		return c, false, err
	}
	ours := slices.ContainsFunc(segments, func(f found) bool { return f.start.UUID == c.UUID })
	// If the segments of the store have another size than the checkpoint, the checkpoint is wrong: it is one
	// file against many.
	sized := !ours || slices.ContainsFunc(segments, func(f found) bool {
		return f.start.Geometry == segment.Geometry{UUID: c.UUID, Size: c.SegmentSize}
	})
	switch {
	case known && len(segments) > 0 && (!sized || c.Spilled.LSN == 0): // 0: killed before it could record where it began
		l.o.Logger.Warn("the checkpoint belongs to another log; the log is read without it", "size", c.SegmentSize, "spilled",
			c.Spilled.LSN)
		return l.bySegments(segments)
	case known && (ours || broken != nil || l.holds(c)):
		l.geo = segment.Geometry{UUID: c.UUID, Size: c.SegmentSize}
		return c, false, nil
	case len(segments) > 0:
		return l.bySegments(segments)
	case broken != nil:
		return c, false, broken
	}
	return c, true, nil
}

// noted adds the features in wal/features to those of the store. hasCheckpoint tells whether the checkpoint could be
// read. If wal/features is damaged, noted ignores the file if hasCheckpoint is true, and otherwise returns an error.
func (l *FileLog) noted(hasCheckpoint bool) error {
	if !l.hasFeatures {
		return nil
	}
	f, err := readFeatures(l.o.FS, l.o.Dir)
	switch {
	case err == nil:
		l.required |= f
	case !errors.Is(err, errs.ErrCorrupt):
		return l.ioError("reading", l.o.wal(FeaturesName), err)
	case !hasCheckpoint:
		return unknownFeatures(err)
	default:
		l.o.Logger.Warn("a damaged file is ignored, because the checkpoint has the same features", "path",
			"wal/"+FeaturesName, "err",
			err)
	}
	return nil
}

// bySegments is used if there is no usable checkpoint. It returns the positions from which the log is read, derived
// from the segments; the bool result is always false: there is a log. If there are segments of several stores, the log
// consists of the segments with the UUID that the store's other files have, because a segment of another store that
// was put into the folder may have a higher number. If no segment has this UUID, or no other file has a UUID, the
// newest segment belongs to the log.
func (l *FileLog) bySegments(segments []found) (Checkpoint, bool, error) {
	if l.o.Named != nil && slices.ContainsFunc(segments,
		func(f found) bool { return f.start.UUID != segments[0].start.UUID }) {
		if id, ok := l.o.Named(); ok {
			for i := len(segments) - 1; i >= 0; i-- {
				if segments[i].start.UUID == id {
					segments = segments[:i+1]
					break
				}
			}
		}
	}
	l.geo = segments[len(segments)-1].start.Geometry
	oldest := oldestChain(segments, l.geo)
	var err error
	l.unmarked, err = l.unreadable(segments[len(segments)-1].start.Number)
	return Checkpoint{UUID: l.geo.UUID, SegmentSize: l.geo.Size, Features: l.required, Flushed: oldest, Spilled: oldest,
		Attested: oldest}, false, err
}

// unreadable looks at the files after the last segment with a valid start. It returns the position up to which
// they may have frames, or 0 if there are no such files. If a crash interrupts the beginning of a segment, its
// file has zeros or a complete start. Any other content is later damage, and without a checkpoint the log must not
// be assumed to end before it.
func (l *FileLog) unreadable(last uint64) (limit LSN, err error) {
	for n := last + 1; ; n++ {
		f, err := l.segment(n)
		if errors.Is(err, past.ErrNoSegment) {
			return limit, nil
		}
		if err != nil {
			return limit, err
		}
		_, _, err = past.ReadStart(f)
		if err == nil || errors.Is(err, segment.ErrEnd) {
			return limit, nil
		}
		if !past.IsNoFrame(err) {
			return limit, err
		}
		limit = l.geo.Start(n) + segment.StartSize
		var b [segment.HeaderSize]byte
		for at, end := l.geo.Start(n), l.geo.End(n); ; at += 8 {
			if at, err = past.NextHeader(l.geo, f, n, at, end); err != nil || at >= end {
				break
			}
			k, rerr := past.ReadFull(f, b[:], l.geo.Offset(at))
			if rerr != nil {
				return limit, rerr
			}
			if h, perr := l.geo.ParseHeader(b[:k], at); perr == nil {
				limit = max(limit, h.End())
			}
		}
		if err != nil {
			return limit, err
		}
	}
}

// holds reports whether the segment exists that contains the last attested position of a checkpoint
// (Checkpoint.Attested).
func (l *FileLog) holds(c Checkpoint) bool {
	if c.SegmentSize == 0 || c.Attested.LSN == 0 {
		return false
	}
	_, err := l.o.FS.Stat(l.o.wal(segment.Name((c.Attested.LSN - 1) / c.SegmentSize)))
	return err == nil
}

// before has the positions that the shared page had before the recovery. They are 0 if the page is not of this boot.
type before struct{ durable, tail, flushed, spilled LSN }

// sound reports whether the positions are possible in a log whose segments have the size in geo. The caller ignores
// impossible positions. The tail is 0 if an earlier recovery was killed.
func (b before) sound(geo segment.Geometry) bool {
	return b.durable == 0 || geo.Holds(b.durable) && (b.tail == 0 || b.durable <= b.tail && geo.Holds(b.tail)) &&
		b.spilled <= b.flushed && b.flushed <= b.durable
}

// takePage maps the shared page and marks it as not recovered. If the page is missing or unusable, it creates the page
// again. The page is then ignored until publish. The durable position stays in the page, so that the next recovery
// finds it if this one is killed. Flushed and Spilled stay in the page, because read-only processes use them meanwhile:
// without them, these processes would report older segments as missing.
//
// The positions in the page are ignored if the page records another inode than that of its file, because it was then
// copied together with the folder and describes the original. They are also ignored if the page records another folder
// as the home of the log.
func (l *FileLog) takePage() error {
	name := l.o.wal("shared")
	if !l.shared.Mapped() {
		p, err := l.o.FS.OpenShared(name, true, l.o.FileMode)
		if err != nil {
			return l.ioError("making", name, err)
		}
		l.shared = page.New(p)
	}
	info, err := l.o.FS.Stat(name)
	if err != nil {
		return l.ioError("checking", name, err)
	}
	p := l.shared
	home := p.Home()
	if p.OfBoot(l.host) && p.Inode() == info.Ino && (home == 0 || home == l.home) {
		l.was = before{p.Durable(), p.Tail(), p.Flushed(), p.Spilled()}
	}
	l.generation.Store(max(p.Generation()+1, uint64(l.o.Clock().UnixMicro())))
	p.SetGeneration(0)
	sameBoot := p.OfBoot(l.host)
	p.Clear(sameBoot)
	p.SetDurable(l.was.durable)
	p.SetFlushed(l.was.flushed)
	p.SetSpilled(l.was.spilled)
	p.SetInode(info.Ino)
	p.SetHome(l.home)
	return nil
}

// publish first makes the features of the store durable, see settleFeatures. Then it writes the positions and the
// features to the shared page, and last the generation.
func (l *FileLog) publish(end Mark, c Checkpoint, poison page.Poison) error {
	if err := l.settleFeatures(c); err != nil {
		return err
	}
	p := l.shared
	p.SetBoot(l.host.Boot)
	p.SetTail(end.LSN)
	p.SetDurable(end.LSN)
	p.SetFlushed(c.Flushed.LSN)
	p.SetSpilled(c.Spilled.LSN)
	p.SetPoison(poison)
	p.SetFeatures(uint64(l.required))
	p.RaiseSequence(c.Sequence)
	if !l.report.Clean {
		p.SetDistrusted(true)
	}
	if f, err := l.segment(l.geo.Number(end.LSN - 1)); err == nil {
		if info, err := f.Stat(); err == nil {
			p.SetPrepared(l.geo.Start(l.geo.Number(end.LSN-1)) + min(uint64(info.Size), l.geo.Size))
		}
	}
	p.SetGeneration(l.generation.Load())
	return nil
}

// found is a segment file in wal/ that begins with a valid start frame.
type found struct {
	start segment.Start
	end   Mark // the mark at the end of the start frame
}

// list returns the segments that have a valid start, in ascending order. If a segment has content but no valid start,
// broken describes it. list also removes unfinished files that killed processes have left.
func (l *FileLog) list() (all []found, broken *errs.CorruptionError, err error) {
	names, err := l.o.FS.ReadDir(l.o.walDir())
	if err != nil {
		return nil, nil, l.ioError("reading", l.o.walDir(), err)
	}
	sort.Strings(names)
	l.hasFeatures = slices.Contains(names, FeaturesName)
	l.hasEnded = slices.Contains(names, past.EndedName)
	for _, name := range names {
		if IsMaking(name) && !l.o.ReadOnly {
			_ = l.o.FS.Remove(l.o.wal(name))
		}
		number, ok := segment.ParseName(name)
		if !ok {
			continue
		}
		f, err := l.segment(number)
		if err != nil {
			return nil, nil, err
		}
		s, h, err := past.ReadStart(f)
		switch {
		case err == nil && s.Number == number:
			all = append(all, found{s, Mark{LSN: h.End(), Sum: h.Sum}})
		case err == nil || errors.Is(err, segment.ErrHeader) || errors.Is(err, segment.ErrPayload):
			broken = &errs.CorruptionError{Path: "wal/" + name, Segment: number,
				Err: fmt.Errorf("the file does not begin with a segment header: %w", errors.Join(err, segment.ErrHeader))}
		case !errors.Is(err, segment.ErrEnd):
			return nil, nil, err
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].start.Number < all[j].start.Number })
	return all, broken, nil
}

// oldestChain returns the mark after the start frame of the oldest segment from which all segments up to the newest one
// exist.
func oldestChain(all []found, geo segment.Geometry) Mark {
	i := len(all) - 1
	for i > 0 && all[i-1].start.Geometry == geo && all[i-1].start.Number+1 == all[i].start.Number {
		i--
	}
	return all[i].end
}

// openDamaged opens a damaged log for reading, up to the damage. It records the position up to which the log was
// durable, so that no later Open takes the damage for a torn tail.
func (l *FileLog) openDamaged(c Checkpoint, end Mark, attested LSN, damage *errs.CorruptionError) error {
	l.damage.Store(damage)
	l.report.Damage = damage
	if attested > c.Attested.LSN {
		c.Attested = Mark{LSN: attested} // without a hash: the frame is unreadable
		if err := l.putCheckpoint(c); err != nil {
			return err
		}
	}
	if err := l.settleFeatures(c); err != nil {
		return err
	}
	c.Flushed.LSN = min(c.Flushed.LSN, end.LSN)
	return l.publish(end, c, page.Damaged)
}

// settleEnd makes the end of the log durable. It copies a torn tail to quarantine/. It then writes the frames above the
// attested position again, writes a header of zeros after them, and syncs the segments.
func (l *FileLog) settleEnd(ctx context.Context, attested, end Mark) error {
	if t := l.report.TornTail; t != nil {
		if err := l.putAside(t); err != nil {
			return err
		}
		l.o.Logger.Warn("the incomplete last write was cut off the log", "at", t.At, "bytes", t.Bytes, "kept in",
			t.Path)
		l.o.Event(Event{Kind: EventTornTail, LSN: t.At, Path: t.Path, Err: t.Err, Bytes: t.Bytes})
	}
	if err := l.rewrite(min(attested.LSN, end.LSN), end.LSN); err != nil {
		return l.ioError("writing the end of the log again in", l.o.walDir(), err)
	}
	number := l.geo.Number(end.LSN - 1)
	if l.geo.Offset(end.LSN) != 0 {
		f, err := l.segment(number)
		if err != nil {
			return err
		}
		n := min(l.geo.End(number)-end.LSN, segment.HeaderSize)
		if _, err := f.WriteAt(make([]byte, n), l.geo.Offset(end.LSN)); err != nil {
			return l.ioError("ending", f.Name(), err)
		}
	}
	numbers, err := l.numbers()
	if err != nil {
		return err
	}
	if !slices.Contains(numbers, number) {
		numbers = append(numbers, number) // the loop below reports that it is missing
	}
	for _, n := range numbers {
		if n < l.geo.Number(attested.LSN) || n > number {
			continue
		}
		f, err := l.segment(n)
		if errors.Is(err, past.ErrNoSegment) && n < number {
			continue
		}
		if err == nil {
			err = f.Sync()
		}
		if err != nil {
			return l.ioError("syncing", l.o.wal(segment.Name(n)), err)
		}
	}
	return l.dropBehind(number)
}

// dropBehind erases the start frames of the segments after the end of the log. No entry in these segments was
// acknowledged, and the log must not seem to continue in them when it has grown.
func (l *FileLog) dropBehind(number uint64) error {
	for n := number + 1; ; n++ {
		f, err := l.segment(n)
		if errors.Is(err, past.ErrNoSegment) {
			return nil
		}
		if err != nil {
			return err
		}
		if _, _, err := past.ReadStart(f); errors.Is(err, segment.ErrEnd) {
			continue
		}
		if _, err := f.WriteAt(make([]byte, 4096), 0); err != nil {
			return l.ioError("clearing", f.Name(), err)
		}
		if err := f.Sync(); err != nil {
			return l.ioError("syncing", f.Name(), err)
		}
	}
}

// startSegment creates the first segment of a log. It writes the start frame before it gives the file its name, because
// an incomplete start frame would be reported as a damaged log. If the file already exists, it was prepared but not
// begun, or has lost its first page. Then startSegment writes the start frame into it; the other content does not
// belong to the log.
func (l *FileLog) startSegment(number uint64, start []byte) error {
	name := l.o.wal(segment.Name(number))
	if _, err := l.o.FS.Stat(name); err == nil {
		return l.startIn(number, start)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return l.ioError("checking", name, err)
	}
	tmp, err := l.makeSegment(l.step(l.geo.Start(number)), start, nil)
	if err != nil {
		return l.full(err)
	}
	if err := l.o.FS.RenameNew(tmp, name); err != nil {
		_ = l.o.FS.Remove(tmp)
		return l.full(err)
	}
	if err := l.o.FS.SyncDir(l.o.walDir()); err != nil {
		_ = l.o.FS.Remove(name) // else the next open would not know that the log is new
		return l.full(err)
	}
	return nil
}

// startIn writes a start frame into an existing segment file.
func (l *FileLog) startIn(number uint64, start []byte) error {
	f, err := l.segment(number)
	if err != nil {
		return err
	}
	if _, err := f.WriteAt(start, 0); err != nil {
		_ = l.o.FS.Remove(f.Name()) // half a start would be reported as a damaged log
		return l.ioError("writing", f.Name(), err)
	}
	if err := f.Sync(); err != nil {
		return l.ioError("syncing", f.Name(), err)
	}
	return nil
}

// create begins a new log. The log begins above all positions in the store's files, so that no position has two
// meanings. missing reports whether the checkpoint names an earlier log that no longer exists. restored reports
// whether the checkpoint only has the position above which the log must begin (see BeginAbove).
func (l *FileLog) create(ctx context.Context, missing, restored bool) error {
	if !l.o.Create {
		return fmt.Errorf("%s has no segments of a log: %w", l.o.walDir(), errs.ErrNoStore)
	}
	l.geo = segment.Geometry{UUID: l.o.UUID, Size: l.o.SegmentSize}
	number := uint64(1)
	if l.o.NewAbove != nil {
		above, err := l.o.NewAbove()
		if err != nil {
			return err
		}
		number = l.geo.Number(above) + 1
	}
	if number > segment.MaxNumber {
		l.o.Logger.Warn("the index has a position that no log can reach; the index is rebuilt", "lsn",
			l.geo.Start(number-1))
		number = 1
	}
	if err := l.brokenByCreate(number, restored, missing); err != nil {
		return err
	}
	h := segment.Header{Nonce: l.o.Nonce(), Time: l.now()}
	b := segment.AppendStart(nil, segment.Start{Geometry: l.geo, Number: number}, &h)
	end := Mark{LSN: h.End(), Sum: h.Sum}
	if err := l.startSegment(number, append(b, make([]byte, segment.HeaderSize)...)); err != nil {
		return err
	}
	c := Checkpoint{Flushed: end, Spilled: end, Attested: end}
	if err := l.putCheckpoint(c); err != nil {
		return err
	}
	if missing {
		l.report.Gone = l.geo.Start(number)
	}
	if err := l.begin(ctx, end, Start{Alone: true, Gone: l.report.Gone}); err != nil {
		return err
	}
	l.state.w.Linked = true
	l.report.Created, l.report.Clean, l.report.Flushed = true, true, end.LSN
	return l.publish(end, c, page.Healthy)
}
