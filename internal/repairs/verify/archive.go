package verify

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal"
)

// archive verifies the archived copies of recycled segments: their blocks and their frames. A copy has no end mark:
// the start frame of the next segment shows whether the copy is complete. archive also reports files in the archive's
// folder that do not belong to the archive.
func (v *Run) archive() error {
	numbers, others, err := v.Source.Log.Past().Archived()
	if err != nil {
		return err
	}
	v.total += int64(len(numbers))
	for _, n := range numbers {
		v.progress(1)
		if !v.o.Chosen(strconv.FormatUint(n, 10)) {
			continue
		}
		if err := v.archived(n); err != nil {
			return err
		}
	}
	for _, name := range others {
		path := "wal/archive/" + name
		// An incomplete copy, which a process is writing or has left when it was killed; the next
		// copy of the segment overwrites it.
		if pid := len(name) > 8 && name[len(name)-8:] == ".zst.new"; pid {
			continue
		}
		if err := v.report(repair.Finding{Kind: repair.Foreign, Severity: repair.Healable, Path: path, Offset: -1,
			Err:   errors.New("not a file of the archive"),
			Stake: "nothing: the file does not belong to the store", Heals: repair.ByMoving,
			Next: repair.NextRepair}); err != nil {
			return err
		}
	}
	return nil
}

func (v *Run) archived(n uint64) error {
	f := repair.Finding{Kind: repair.ArchiveDamaged, Severity: repair.Lost, Path: fmt.Sprintf("wal/archive/%08d.zst", n),
		Next: repair.NextRepair, Stake: "the history of the memories that were written in this segment of the log, " +
			"and restoring to a moment in it"}
	if s, err := v.Source.Log.Past().SegmentFile(n); err == nil && s.Err == nil {
		f.Severity, f.Heals = repair.Healable, repair.ByLog // the segment is still in the log
	}
	c := v.lookAtCopy(n)
	for i := 0; i < tries && c.suspect(); i++ { // a purge may have replaced the copy meanwhile
		c = v.lookAtCopy(n)
	}
	if places.Gone(c.err) {
		return nil // the archive has removed the copy
	}
	if c.err != nil {
		return c.err
	}
	v.sum.Archived++
	v.sum.Bytes += c.bytes
	var err error
	for _, d := range c.damage {
		f.Offset, f.Err = d.Offset, d
		err = errors.Join(err, v.report(f))
	}
	if len(c.damage) > 0 {
		return err
	}
	if f.Err = c.first; c.first != nil {
		return v.report(f)
	}
	for _, g := range c.gaps {
		err = errors.Join(err, v.report(repair.GapIn(f.Path, g)))
	}
	f.Offset = -1
	if c.end > c.size {
		f.Err = fmt.Errorf("the file ends early: %d bytes exist, but at least %d are needed", c.size, c.end)
		return errors.Join(err, v.report(f))
	}
	for _, g := range c.holes {
		f.LSN, f.Err = g.At, fmt.Errorf("%d bytes are not a frame of this log: %w", g.To-g.At, g.Err)
		err = errors.Join(err, v.report(f))
	}
	return err
}

// archivedCopy is the result of reading the archived copy of a segment.
type archivedCopy struct {
	damage []*errs.CorruptionError // errors of damaged blocks
	first  error                   // error if the copy contains another segment, or belongs to another store
	holes  []wal.Gap               // byte ranges that contain no valid frame
	gaps   []*errs.GapError        // left by an earlier repair
	// size of the segment in the copy, and the size at which it is complete, both in bytes
	size, end int64
	bytes     int64
	err       error
}

func (c *archivedCopy) suspect() bool {
	return len(c.damage) > 0 || c.first != nil || len(c.holes) > 0 || c.end > c.size
}

// lookAtCopy reads the blocks of the archived copy of segment n, and then its frames: undamaged blocks may
// contain a damaged frame.
func (v *Run) lookAtCopy(n uint64) (c archivedCopy) {
	c.damage, c.err = v.Source.Log.Past().ReadArchive(v.ctx, n, func(offset int64, plain []byte) bool {
		if offset == 0 {
			s, _, err := segment.ParseStart(plain)
			if err == nil && (s.UUID != v.Source.Log.UUID() || s.Number != n) {
				err = fmt.Errorf("the file contains segment %d of store %x, not segment %d of store %x",
					s.Number, s.UUID, n, v.Source.Log.UUID())
			}
			c.first = err
		}
		c.size = offset + int64(len(plain))
		c.bytes += int64(len(plain))
		return true
	})
	if c.err != nil || len(c.damage) > 0 || c.first != nil {
		return c
	}
	if c.end = v.endOf(n); c.end > c.size {
		return c
	}
	c.holes, c.gaps, c.err = v.Source.Log.Past().CheckArchived(v.ctx, n)
	if errors.Is(c.err, segment.ErrPayload) || errors.Is(c.err, segment.ErrHeader) { // damaged after the blocks were read
		c.damage = append(c.damage, &errs.CorruptionError{Path: fmt.Sprintf("wal/archive/%08d.zst", n), Segment: n,
			Offset: -1, Err: c.err})
		c.err = nil
	}
	return c
}

// endOf returns the offset in segment n at which its frames end, as the start frame of the next segment records it; 0
// if the next segment is neither in the log nor in the archive.
func (v *Run) endOf(n uint64) int64 {
	var start segment.Start
	if s, err := v.Source.Log.Past().SegmentFile(n + 1); err == nil && s.Err == nil {
		start = s.Start
	} else {
		_, err := v.Source.Log.Past().ReadArchive(v.ctx, n+1, func(_ int64, plain []byte) bool {
			start, _, _ = segment.ParseStart(plain)
			return false
		})
		if err != nil {
			return 0
		}
	}
	if start.PrevEnd == 0 || start.UUID != v.Source.Log.UUID() {
		return 0
	}
	if in, offset := v.Source.Log.Past().Place(start.PrevEnd - 1); in == n {
		return offset + 1
	}
	return 0
}
