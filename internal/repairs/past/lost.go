package past

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal"
)

// What a repair of the log loses for good is history: versions that are in the damaged part and
// were replaced since. The newest version of a document is in its file, and is not lost with the
// log. Each version has the position of the one before it, so sound entries after the damage reveal
// the last version that a document had in the damaged part. Of earlier versions only a few headers
// may be left to count: so the number is a lower bound, and the damaged part is described by its
// size and time.

// Loss describes the lost data: data whose only copy was in the damaged parts of a log.
type Loss struct {
	Versions, Documents int       // the number of versions that are known to be lost, and the number of their documents
	Bytes               int64     // size of damaged parts with unknown content
	After, Before       time.Time // the times between which the lost versions were written; zero if unknown
}

func (l Loss) String() string {
	says := ""
	if l.Versions > 0 {
		says = human.Count(l.Versions, "old version", "old versions") + " of " +
			human.Count(l.Documents, "document", "documents")
	}
	if l.Bytes == 0 {
		return says
	}
	when := ""
	switch after, before := l.After.Format(time.RFC3339), l.Before.Format(time.RFC3339); {
	case !l.After.IsZero() && !l.Before.IsZero():
		when = ", written between " + after + " and " + before
	case !l.After.IsZero():
		when = ", written after " + after
	case !l.Before.IsZero():
		when = ", written before " + before
	}
	if says == "" {
		return fmt.Sprintf("the old versions that were in %s of the log%s, if there were any", human.Bytes(l.Bytes), when)
	}
	return fmt.Sprintf("at least %s that were in %s of the log%s", says, human.Bytes(l.Bytes), when)
}

// Lost counts the lost versions, that is, those whose only copy was in the damaged parts of the log, and the documents
// of these versions.
func Lost(ctx context.Context, log *wal.FileLog, s *state.State) (Loss, error) {
	list, _, err := log.Past().SegmentFiles()
	if err != nil {
		return Loss{}, err
	}
	archived, _, err := log.Past().Archived()
	if err != nil {
		return Loss{}, err
	}
	d := damage{current: s.Current, named: map[wal.LSN]string{}}
	next := uint64(0)
	for i, f := range list {
		if f.Err != nil && next != 0 && f.Number != next {
			continue // not a segment of this log
		}
		if next != 0 && f.Number > next && !slices.Contains(archived, next) {
			d.gap(wal.Gap{At: log.Past().SegmentEnd(next - 1), To: log.Past().SegmentEnd(f.Number - 1)})
		}
		if next != 0 || f.Err == nil { // the first file may not be a segment of this log
			next = f.Number + 1
		}
		unbegun, err := log.Past().Unbegun(f)
		if err != nil && !places.Gone(err) {
			return Loss{}, err
		}
		if unbegun {
			continue
		}
		end, _ := FramesEnd(log, list[i:])
		_, err = log.Past().WalkSegment(ctx, f.Number, wal.Mark{}, end, d.entry, func(g wal.Gap) {
			if !errors.Is(g.Err, segment.ErrEnd) || g.To != end {
				d.gap(g)
			}
		})
		if err != nil && !places.Gone(err) {
			return Loss{}, err
		}
	}
	return d.loss(ctx, log, archived)
}

// damage collects what reading a damaged log finds: the holes, and what is known about them.
type damage struct {
	current func(key string) (wal.LSN, error)
	named   map[wal.LSN]string // keys, by position, of versions that a later version names as its predecessor
	gaps    []hole
	newest  time.Time
}

// hole is a gap in the log, with the times of the valid entries before and after it.
type hole struct {
	wal.Gap
	after, before time.Time
}

func (d *damage) gap(g wal.Gap) { d.gaps = append(d.gaps, hole{Gap: g, after: d.newest}) }

func (d *damage) entry(_ wal.Mark, e *wal.Entry) error {
	if e == nil {
		return nil
	}
	d.newest = e.Reading
	for i := len(d.gaps) - 1; i >= 0 && d.gaps[i].before.IsZero(); i-- {
		d.gaps[i].before = e.Reading
	}
	if len(e.Key) == 0 || kind.Of(e.Key) == nil {
		return nil
	}
	if view, err := state.Read(e); err == nil && view.Previous != 0 {
		d.named[view.Previous] = string([]byte(e.Key))
	}
	return nil
}

func (d *damage) loss(ctx context.Context, log *wal.FileLog, archived []uint64) (l Loss, err error) {
	documents := map[string]bool{}
	count := func(key string) {
		l.Versions++
		documents[key] = true
	}
	for at, key := range d.named {
		if slices.ContainsFunc(d.gaps, func(g hole) bool { return at >= g.At && at < g.To }) {
			if _, err := log.Past().ArchivedAt(ctx, at); err != nil {
				count(key)
			}
		}
	}
	for _, g := range d.gaps {
		if number, _ := log.Past().Place(g.At); slices.Contains(archived, number) || d.named[g.At] != "" && errors.Is(g.Err,
			segment.ErrPayload) {
			continue
		}
		if g.Key != "" { // a single frame, with its key
			if kind.Of(g.Key) == nil {
				continue
			}
			if now, err := d.current(g.Key); err == nil && now == g.At {
				continue
			} else if err == nil && now > g.At {
				count(g.Key)
				continue
			}
		}
		if g.At%log.SegmentSize() == 0 && g.To-g.At == segment.StartSize {
			continue // only the start frame of a segment
		}
		if l.Bytes == 0 || !l.After.IsZero() && g.after.Before(l.After) {
			l.After = g.after
		}
		if l.Bytes == 0 || g.before.IsZero() || !l.Before.IsZero() && g.before.After(l.Before) {
			l.Before = g.before
		}
		l.Bytes += int64(g.To - g.At)
	}
	l.Documents = len(documents)
	return l, nil
}

// FramesEnd returns the position at which the frames of the first segment in list end. The start frame of the next
// segment records this position. If it cannot be read there, recorded is false, and end is the end of the whole
// segment.
func FramesEnd(log *wal.FileLog, list []wal.SegmentFile) (end wal.LSN, recorded bool) {
	end = log.Past().SegmentEnd(list[0].Number)
	if len(list) > 1 && list[1].Err == nil && list[1].Number == list[0].Number+1 &&
		list[1].Start.PrevEnd > end-log.SegmentSize() {
		return min(end, list[1].Start.PrevEnd), true
	}
	return end, false
}

// Frames reads the first segment in list, in a log that was durable up to attested. It returns the position at which
// the segment's frames end, and reports whether all frames before that position are valid. It also reports whether the
// segment was truncated, that is, whether zeros, as at the end of a log, begin before the known end of the frames.
func Frames(ctx context.Context, log *wal.FileLog, list []wal.SegmentFile,
	attested wal.LSN) (end wal.LSN, sound, cut bool, err error) {
	f := list[0]
	end, said := FramesEnd(log, list)
	sound = f.Err == nil
	reached := end
	in, _ := log.Past().Place(attested - 1)
	switch {
	case said:
	case in == f.Number:
		reached = attested
	default:
		reached = 0 // the end is unknown
	}
	_, err = log.Past().WalkSegment(ctx, f.Number, wal.Mark{}, end, func(wal.Mark, *wal.Entry) error { return nil },
		func(g wal.Gap) {
			sound = sound && errors.Is(g.Err, segment.ErrEnd) && g.To == end
			cut = cut || g.At < reached
		})
	if !sound && in == f.Number {
		end = min(end, attested)
	}
	return end, sound, cut, err
}
