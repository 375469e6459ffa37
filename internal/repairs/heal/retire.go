package heal

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/repairs/past"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal"
)

// retire removes damaged segments that the log no longer needs.
func (r *repairer) retire(d *repair.Done) error {
	s, err := r.o.Open(r.ctx, true)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	log := s.Source().Log
	below, _ := log.Past().Place(log.Spilled() - 1)
	d.Result = "the log does not need this segment"
	return r.retireBelow(d, log, below, log.Durable())
}

// retireBelow removes all segments below the given number from the log, and keeps them in quarantine. It copies
// undamaged segments completely to the archive; of a damaged segment it copies the valid frames. attested is the
// position up to which the log is known to have been durable.
func (r *repairer) retireBelow(d *repair.Done, log *wal.FileLog, number uint64, attested wal.LSN) error {
	list, _, err := log.Past().SegmentFiles()
	if err != nil {
		return err
	}
	for i, f := range list {
		if f.Number >= number {
			break
		}
		rel := "wal/" + segment.Name(f.Number)
		unbegun, err := log.Past().Unbegun(f)
		if err != nil {
			return err
		}
		if unbegun {
			if err := r.remove(rel); err != nil {
				return err
			}
			continue
		}
		copied := fmt.Sprintf("wal/archive/%08d.zst", f.Number)
		end, sound, cut, err := past.Frames(r.ctx, log, list[i:], attested)
		if err != nil {
			return err
		}
		if sound {
			// Zeros in the place of a frame look like the end of the segment: if cut, the new copy may be
			// incomplete.
			if _, gone := r.o.FS.Stat(r.path(filepath.FromSlash(copied))); cut && places.Gone(gone) {
				err = r.keepFor(d, copied)
			}
			if err == nil {
				err = log.Archive().Copy(f.Number)
			}
		} else {
			err = r.salvage(d, log, list[i:], end, copied)
		}
		if err != nil {
			return err
		}
		one := repair.Done{Action: repair.Action{Do: d.Do, Path: rel, Findings: d.Findings}}
		if err := r.setAside(&one, rel, reasonOf(d.Findings)); err != nil && !errors.Is(err, errNothing) {
			return err
		}
		if d.Where == "" || rel == d.Path {
			d.Where = one.Where
		}
	}
	return nil
}

// salvage copies the valid frames of the first segment in list to the archive. end is the position at which the frames
// of that segment end. copied is the path of the segment's copy in the archive; if a file is at this path already,
// salvage first keeps that file in quarantine.
func (r *repairer) salvage(d *repair.Done, log *wal.FileLog, list []wal.SegmentFile, end wal.LSN, copied string) error {
	f, next := list[0], list[1:]
	last := wal.Mark{LSN: end}
	if len(next) > 0 && next[0].Err == nil && next[0].Start.PrevEnd == end {
		last.Sum = next[0].Start.PrevSum
	}
	if err := r.keepFor(d, copied); err != nil {
		return err
	}
	_, err := log.Archive().Salvage(r.ctx, f.Number, last)
	return err
}
