package heal

import (
	"errors"

	"github.com/varve-db/varve/internal/journal"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal"
)

// retire sets aside what the log no longer needs, with what is damaged in it.
func (r *repairer) retire(d *repair.Done) error {
	s, err := r.o.Open(r.ctx, true)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	log := s.Source().Log
	below, _ := log.Place(log.Spilled() - 1)
	d.Result = "the log does not need it"
	return r.retireBelow(d, log, below)
}

// retireBelow takes all segments below a number away: the sound ones are copied
// into the archive, and all lie in quarantine.
func (r *repairer) retireBelow(d *repair.Done, log *wal.FileLog, number uint64) error {
	list, _, err := log.SegmentFiles()
	if err != nil {
		return err
	}
	for i, f := range list {
		if f.Number >= number {
			break
		}
		rel := "wal/" + segment.Name(f.Number)
		if f.Zero {
			if err := r.Remove(rel); err != nil { // prepared, and never begun
				return err
			}
			continue
		}
		end := framesEnd(log, list[i:])
		sound := f.Err == nil
		_, err := log.WalkSegment(r.ctx, f.Number, wal.Mark{}, end, func(wal.Mark, *wal.Entry) error { return nil }, func(g wal.Gap) {
			sound = sound && errors.Is(g.Err, segment.ErrEnd) && g.To == end
		})
		if err != nil {
			return err
		}
		if sound {
			if err := log.ArchiveSegment(f.Number); err != nil {
				return err
			}
		}
		one := repair.Done{Action: repair.Action{Do: d.Do, Path: rel, Findings: d.Findings}}
		if err := r.Aside(&one, rel, journal.Why(d.Findings)); err != nil && !errors.Is(err, journal.ErrNothing) {
			return err
		}
		if d.Where == "" || rel == d.Path {
			d.Where = one.Where
		}
	}
	return nil
}

// framesEnd is up to where the first of some segments holds frames, as the one
// after it says; else its end.
func framesEnd(log *wal.FileLog, list []wal.SegmentFile) wal.LSN {
	end := log.SegmentEnd(list[0].Number)
	if len(list) > 1 && list[1].Err == nil && list[1].Number == list[0].Number+1 && list[1].Start.PrevEnd > end-log.SegmentSize() {
		end = min(end, list[1].Start.PrevEnd)
	}
	return end
}
