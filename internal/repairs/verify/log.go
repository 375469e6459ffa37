package verify

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/wal/past"
)

// row is the sequence of segments that the log should have, with the state of each.
type row struct {
	v       *Run
	durable wal.LSN
	need    uint64 // number of the first segment that recovery needs
	last    uint64
	files   map[uint64]wal.SegmentFile
	clean   map[uint64]bool // segments read without a gap
	met     []bool          // for each position in the checkpoint, whether a frame ends there
	absent  map[string]wal.LSN

	set               *index.Set // the index when the check began; nil: the index is closed
	indexed, finished []byte     // buffers of asIndexed
}

// log reads every segment from the oldest up to the durable end.
func (v *Run) log() error {
	if err := v.Source.CatchUp(v.ctx); err != nil && v.Source.Log.Damage() == nil {
		return err
	}
	known, err := v.Source.Log.Known()
	if err != nil {
		return err
	}
	r := &row{v: v, durable: known, files: map[uint64]wal.SegmentFile{}, clean: map[uint64]bool{}}
	if r.set = v.Source.State.Set(); r.set != nil {
		defer func() { _ = r.set.Release() }()
	}
	for _, m := range v.marks {
		r.durable = max(r.durable, m.LSN) // an engine that met damage below the attested position stopped there
	}
	r.met, r.absent = make([]bool, len(v.marks)), map[string]wal.LSN{}
	list, others, err := v.Source.Log.Past().SegmentFiles()
	if err != nil {
		return err
	}
	if err := r.within(list); err != nil {
		return err
	}
	r.last, _ = v.Source.Log.Past().Place(r.durable - 1)
	// Read after the list: segments in the list from here on were not recycled before.
	spilled, _ := v.Source.Log.Past().Place(v.Source.Log.Spilled())
	r.need = min(spilled, r.last)
	first := r.need
	for _, s := range list {
		if r.files[s.Number] = s; s.Number >= first {
			continue // a spare segment is not searched for frames
		}
		if v.Source.Log.Archive().Needs(s) {
			first = s.Number
		}
	}
	v.total += int64(r.last - first + 1)
	for _, s := range list {
		if s.Number < first || s.Number > r.last {
			if err := r.checkForeign(s); err != nil {
				return err
			}
		}
	}
	var prev wal.Mark
	for n := first; n <= r.last; n++ {
		if prev, err = r.segment(n, prev); err != nil {
			return err
		}
		v.progress(1)
	}
	if err := r.unmet(); err != nil {
		return err
	}
	if err := r.vanished(); err != nil {
		return err
	}
	return v.besideSegments(others)
}

// within makes sure that only existing segments and the one after them are read. If a position in the checkpoint is
// beyond these segments, within reports it: a damaged position may have any value.
func (r *row) within(list []wal.SegmentFile) error {
	number, _ := r.v.Source.Log.Past().Place(r.durable - 1)
	newest := past.NewestSegment(list)
	if number <= newest+1 {
		return nil
	}
	f := repair.Finding{
		Kind: repair.CheckpointMark, Severity: repair.Healable, Path: "checkpoint", Offset: -1, LSN: r.durable,
		Stake: "the position at which recovery begins, and the detection of damage in the log",
		Heals: repair.ByLog, Next: repair.NextRepair,
		Err: fmt.Errorf("the checkpoint says that the log was durable up to position %d, in %s, but the newest "+
			"segment is %s", r.durable, segment.Name(number), segment.Name(newest)),
	}
	r.durable = r.v.Source.Log.Past().SegmentEnd(newest + 1)
	return r.v.report(f)
}

// released reports whether segment n is being recycled, or was recycled.
func (r *row) released(n uint64) bool {
	s, err := r.v.Source.Log.Past().SegmentFile(n)
	spilled, _ := r.v.Source.Log.Past().Place(r.v.Source.Log.Spilled())
	if n < spilled && err == nil && s.Zero {
		return !r.v.Source.Log.Archive().Needs(s)
	}
	return n < spilled && places.Gone(err)
}

// checkForeign checks a file with the name of a segment that is not part of the log.
func (r *row) checkForeign(s wal.SegmentFile) error {
	for range tries {
		if s.Err == nil || s.Zero {
			return nil // prepared, just begun, or about to be recycled
		}
		now, err := r.v.Source.Log.Past().SegmentFile(s.Number)
		if places.Gone(err) {
			return nil
		}
		if err != nil {
			now.Err = err
		}
		s = now
	}
	if last, _ := r.v.Source.Log.Past().Place(r.v.Source.Log.Durable() - 1); s.Number > r.last && s.Number <= last {
		return nil // the log has reached this segment meanwhile: the next run reads it
	}
	return r.v.report(repair.Finding{
		Kind: repair.SegmentForeign, Severity: repair.Healable, Path: "wal/" + segment.Name(s.Number), Err: s.Err,
		Stake: "nothing: the log does not use the file", Heals: repair.ByMoving, Next: repair.NextRepair,
	})
}

// segment reads segment n and returns the position and chain hash at its end; zero if the end is unknown. prev
// is the end of the segment before.
func (r *row) segment(n uint64, prev wal.Mark) (wal.Mark, error) {
	v := r.v
	if _, ok := r.files[n]; !ok {
		return wal.Mark{}, r.missing(n)
	}
	end, open := r.end(n)
	var gaps []wal.Gap
	at, err := v.Source.Log.Past().WalkSegment(v.ctx, n, prev, end, r.visit, func(g wal.Gap) { gaps = append(gaps, g) })
	for i := 0; i < tries && err == nil && len(gaps) > 0; i++ {
		gaps = gaps[:0]
		at, err = v.Source.Log.Past().WalkSegment(v.ctx, n, prev, end, func(wal.Mark, *wal.Entry) error { return nil },
			func(g wal.Gap) { gaps = append(gaps, g) })
	}
	if places.Gone(err) {
		return wal.Mark{}, r.missing(n)
	}
	if err != nil {
		return wal.Mark{}, err
	}
	if g := len(gaps); open && g > 0 && gaps[g-1].To == end && errors.Is(gaps[g-1].Err, segment.ErrEnd) {
		gaps = gaps[:g-1] // the end is unknown, so this gap may be only the rest of the segment
		at = wal.Mark{}
	}
	if len(gaps) > 0 && r.released(n) {
		return wal.Mark{}, nil
	}
	gaps = joined(gaps)
	v.sum.Segments++
	v.sum.Bytes += r.files[n].Size
	r.clean[n] = len(gaps) == 0
	for _, g := range gaps {
		if err := r.damaged(n, g); err != nil {
			return wal.Mark{}, err
		}
	}
	return at, nil
}

// joined returns the gaps with neighbouring gaps merged into one.
func joined(gaps []wal.Gap) (list []wal.Gap) {
	for _, g := range gaps {
		if n := len(list); n > 0 && list[n-1].To == g.At {
			list[n-1].To = g.To
			continue
		}
		list = append(list, g)
	}
	return list
}

// end returns the position at which the frames of segment n end. For the last segment this is the durable end of the
// log; for another segment, the start frame of the next segment records it. If neither is known, open is true, and end
// is the end of the whole segment.
func (r *row) end(n uint64) (end wal.LSN, open bool) {
	if n == r.last {
		return r.durable, false
	}
	whole := r.v.Source.Log.Past().SegmentEnd(n)
	if next, ok := r.files[n+1]; ok && next.Err == nil {
		if in, _ := r.v.Source.Log.Past().Place(next.Start.PrevEnd - 1); next.Start.PrevEnd != 0 && in == n {
			return next.Start.PrevEnd, false
		}
	}
	return whole, true
}

// missing reports that segment n does not exist, unless it was recycled. Segments are recycled in rising order. So a
// segment that does not exist was not recycled if an older one exists or if recovery needs it.
func (r *row) missing(n uint64) error {
	if _, err := r.v.Source.Log.Past().SegmentFile(n); !places.Gone(err) || r.released(n) && !r.older(n) {
		return nil
	}
	f := repair.Finding{Kind: repair.SegmentMissing, Path: "wal/" + segment.Name(n), Offset: -1, Next: repair.NextRepair,
		Err: errors.New("the segment is missing")}
	start, _ := r.bounds(n)
	f.LSN = start
	r.stake(&f, n, min(r.v.Source.Log.Past().SegmentEnd(n), r.durable))
	return r.v.report(f)
}

func (r *row) bounds(n uint64) (from, to wal.LSN) {
	to = r.v.Source.Log.Past().SegmentEnd(n)
	return to - r.v.Source.Log.SegmentSize(), to
}

func (r *row) older(n uint64) bool {
	for number, s := range r.files {
		if number < n && s.Err == nil {
			if now, err := r.v.Source.Log.Past().SegmentFile(number); err == nil && now.Err == nil {
				return true
			}
		}
	}
	return false
}

// stake describes in finding f which data would be lost with segment n, and which copies would restore the data.
// end is the position at which the entries of the segment end.
func (r *row) stake(f *repair.Finding, n uint64, end wal.LSN) {
	switch {
	case end <= r.v.Source.Log.Spilled():
		f.Stake = "the history of the memories that were written in this segment; their newest versions are in " +
			"files and index"
	case end <= r.v.Source.Log.Flushed():
		f.Stake = "the index of the memories that were written in this segment; their newest versions are in files"
	default:
		f.Stake = "acknowledged writes that are not in files yet, and all later writes"
	}
	f.Severity, f.Heals = repair.Lost, ""
	spilled, _ := r.v.Source.Log.Past().Place(r.v.Source.Log.Spilled() - 1)
	if n < spilled {
		f.Remarks |= repair.Released
	}
	switch {
	case r.archived(n):
		f.Severity, f.Heals = repair.Healable, repair.ByArchive
	case end <= r.v.Source.Log.Flushed():
		f.Severity, f.Heals = repair.Healable, repair.ByFiles
	}
}

// archived reports whether the archive has an undamaged copy of a segment.
func (r *row) archived(n uint64) bool {
	damage, err := r.v.Source.Log.Past().ReadArchive(r.v.ctx, n, func(int64, []byte) bool { return true })
	return err == nil && len(damage) == 0
}

func (r *row) damaged(n uint64, g wal.Gap) error {
	_, offset := r.v.Source.Log.Past().Place(g.At)
	f := repair.Finding{Kind: repair.SegmentDamaged, Path: "wal/" + segment.Name(n), Offset: offset, LSN: g.At,
		Next: repair.NextRepair,
		Err:  fmt.Errorf("%d bytes are not a frame of this log: %w", g.To-g.At, g.Err)}
	r.stake(&f, n, g.To)
	return r.v.report(f)
}

// unmet reports the positions in the checkpoint that are not the end of a frame.
func (r *row) unmet() error {
	for i, m := range r.v.marks {
		n, offset := r.v.Source.Log.Past().Place(m.LSN - 1)
		if r.met[i] || !r.clean[n] {
			continue
		}
		err := r.v.report(repair.Finding{
			Kind: repair.CheckpointMark, Severity: repair.Healable, Path: "checkpoint", Offset: -1, LSN: m.LSN,
			Stake: "the position at which recovery begins, and the detection of damage in the log",
			Heals: repair.ByLog, Next: repair.NextRepair,
			Err: fmt.Errorf("position %d of the checkpoint is not the end of a frame: no frame ends at byte %d of %s",
				m.LSN, offset+1, segment.Name(n)),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// besideSegments reports the files in wal/ that belong neither to the log nor to a running process. names has the
// names of the files that are not segments.
func (v *Run) besideSegments(names []string) error {
	for _, name := range names {
		if places.InLog(name) {
			continue
		}
		f := repair.Finding{Kind: repair.Foreign, Severity: repair.Healable, Path: "wal/" + name, Offset: -1,
			Err:   errors.New("not a file of the log"),
			Stake: "nothing: the file does not belong to the store", Heals: repair.ByMoving, Next: repair.NextRepair}
		if pid, ok := preparing(name); ok {
			if slices.Contains(v.Source.Log.Processes().IDs(), pid) {
				continue // its process is running
			}
			f.Kind, f.Severity, f.Err = repair.Leftover, repair.Info,
				fmt.Errorf("process %d has not finished this file; the next open removes it", pid)
		}
		if _, err := v.Source.FS.Stat(v.path("wal", name)); places.Gone(err) {
			continue
		}
		if err := v.report(f); err != nil {
			return err
		}
	}
	return nil
}

// preparing returns the process id in the name of a segment file that is being created: <pid>-<n>.new, optionally with
// the segment's name and a dot before it. ok is false for any other name.
func preparing(name string) (pid int, ok bool) {
	mid, ok := strings.CutSuffix(name, ".new")
	digits, _, ok2 := strings.Cut(mid[strings.LastIndexByte(mid, '.')+1:], "-")
	pid, err := strconv.Atoi(digits)
	return pid, ok && ok2 && err == nil
}
