package wal

import (
	"context"
	"errors"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/segment"
)

// ArchivedGaps are the places in the copy of a segment of which a repair has found nothing. What
// cannot be read has none: ReadArchive says why.
func (l *FileLog) ArchivedGaps(ctx context.Context, number uint64) (list []*errs.GapError) {
	if _, err := l.SegmentFile(number); err == nil {
		return nil // it is what is read
	}
	_ = l.Past().walk(ctx, Mark{LSN: l.geo.Start(number)}, l.geo.End(number), func(_ *segment.Header, _ []byte, err error) bool {
		var g *errs.GapError
		if !errors.As(err, &g) {
			return err == nil
		}
		list = append(list, g)
		return true
	})
	return list
}
