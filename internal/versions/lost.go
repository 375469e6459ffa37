package versions

import (
	"context"
	"errors"
	"slices"

	"github.com/varve-db/varve/internal/document"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal"
)

// What a repair of the log loses for good is history: versions that lie in the damage, and were
// replaced since. Each version names the one before it, so what is sound behind the damage tells of
// them. The newest version of a document is in its file, and is not lost with the log.

// Lost counts the versions that only the damaged places of the log had, and the documents
// that they are of.
func Lost(ctx context.Context, log *wal.FileLog) (count, documents int, err error) {
	list, _, err := log.SegmentFiles()
	if err != nil {
		return 0, 0, err
	}
	var gaps []wal.Gap
	type before struct {
		at  wal.LSN
		key string
	}
	var named []before
	for i, f := range list {
		unbegun, err := log.Unbegun(f)
		if err != nil && !places.Gone(err) {
			return 0, 0, err
		}
		if unbegun {
			continue
		}
		end := FramesEnd(log, list[i:])
		_, err = log.WalkSegment(ctx, f.Number, wal.Mark{}, end, func(_ wal.Mark, e *wal.Entry) error {
			if e == nil || len(e.Key) == 0 || document.Of(e.Key) == nil {
				return nil
			}
			if view, err := state.Read(e); err == nil && view.Previous != 0 {
				named = append(named, before{view.Previous, string([]byte(e.Key))})
			}
			return nil
		}, func(g wal.Gap) {
			if !errors.Is(g.Err, segment.ErrEnd) || g.To != end {
				gaps = append(gaps, g)
			}
		})
		if err != nil && !places.Gone(err) {
			return 0, 0, err
		}
	}
	keys := map[string]bool{}
	for _, b := range named {
		if !slices.ContainsFunc(gaps, func(g wal.Gap) bool { return b.at >= g.At && b.at < g.To }) {
			continue
		}
		if _, err := log.ArchivedAt(ctx, b.at); err == nil {
			continue
		}
		count++
		keys[b.key] = true
	}
	return count, len(keys), nil
}

// FramesEnd is up to where the first of some segments holds frames, as the one
// after it says; else its end.
func FramesEnd(log *wal.FileLog, list []wal.SegmentFile) wal.LSN {
	end := log.SegmentEnd(list[0].Number)
	if len(list) > 1 && list[1].Err == nil && list[1].Number == list[0].Number+1 && list[1].Start.PrevEnd > end-log.SegmentSize() {
		end = min(end, list[1].Start.PrevEnd)
	}
	return end
}
