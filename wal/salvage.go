package wal

import (
	"context"

	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

// A segment with a hole in it cannot be served, but its sound frames are history. Archive.Salvage writes them
// into the copy of the segment in the archive, each at its position, and in place of the hole a frame that
// records where the hole begins and ends, and how the chain continues.
//
// After a hole a frame is found by its header: the header's own checksum, which is seeded with the store and
// the segment, must match, and the header must name its own position.

// Salvage writes the readable parts of a segment that is damaged into a copy in the archive, and returns the gaps of
// that copy. end is the position up to which the segment has frames, with the chain hash there if it is known. If the
// archive already has a copy, Salvage keeps it.
func (a Archive) Salvage(ctx context.Context, number uint64, end Mark) (gaps []Gap, err error) {
	if bytes, _ := a.l.o.Archive(); bytes <= 0 || a.l.archived(number) {
		return nil, nil
	}
	f, err := a.l.Past().OpenSegment(number)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := past.NewSalvaged(f, a.l.geo)
	prev, err := a.l.endBefore(ctx, number, f)
	if err != nil {
		return nil, err
	}
	if gaps, err = s.Patch(ctx, number, prev, end); err != nil || len(gaps) == 0 {
		return gaps, err
	}
	if err = a.l.putCopy(number, s); err != nil {
		_ = a.l.letGo(a.l.o.wal(past.CopyName(number)) + ".new")
		if !vfs.IsDiskFull(err) {
			return gaps, a.l.ioError("archiving", a.l.o.wal(segment.Name(number)), err)
		}
		a.l.o.Event(Event{Kind: EventArchiveGap, Path: "wal/" + segment.Name(number), Err: err})
	}
	return gaps, nil
}

// endBefore returns the mark at which the frames of the previous segment, number-1, end, as far as the file or the
// copy of that segment can be read. It does so only if the start of the segment with the given number, which records
// this mark, cannot be read in f. Otherwise, and if nothing is known, the result is zero.
func (l *FileLog) endBefore(ctx context.Context, number uint64, f past.Source) (prev Mark, err error) {
	if _, _, err := past.ReadStart(f); err == nil || number == 1 {
		return prev, nil
	}
	last := func(m Mark, _ *segment.Header, _ []byte) error { prev = m; return nil }
	before, err := l.Past().OpenSegment(number - 1)
	if err == nil {
		defer before.Close()
		if _, _, err := past.ReadStart(before); err == nil {
			_, err = past.WalkFrames(ctx, l.geo, before, number-1, Mark{}, l.geo.End(number-1), last, func(Gap) {})
			return prev, err
		}
	}
	c, err := past.OpenCopy(l.o.FS, l.o.walDir(), number-1)
	if err != nil {
		return Mark{}, nil
	}
	defer c.Close()
	_, err = past.WalkFrames(ctx, l.geo, c, number-1, Mark{}, l.geo.End(number-1), last, func(Gap) {})
	if err != nil && past.IsNoFrame(err) {
		err = nil
	}
	return prev, err
}
