package backup

import (
	"context"

	"github.com/varve-db/varve/internal/kind"
)

// wasPurged reports whether a document of the backup was purged after the backup and before the restored moment. It
// looks at the store that was backed up. A purge erases the log entries of a document, including the entry of its
// deletion. So the document is no longer in that store, and no entry after the restored moment deletes it either.
// Restoring the document would create a state that never existed.
func (r *restore) wasPurged(ctx context.Context, name string, data []byte) (bool, error) {
	k := kind.At(name)
	if k == nil || !k.IsDocument(k.Below(name)) || r.s.Has == nil {
		return false, nil
	}
	c, err := k.Decode(append([]byte(nil), data...),
		kind.DecodeOptions{Limits: kind.StoredLimits, ID: k.IDAt(k.Below(name))})
	if err != nil {
		return false, nil // a document that cannot be decoded is restored as it is
	}
	if has, err := r.s.Has(k.Letter, c.ID); has || err != nil {
		return false, err
	}
	if r.deleted == nil {
		if err := r.deletedLater(ctx); err != nil {
			return false, err
		}
	}
	return !r.deleted[k.Key(c.ID)], nil
}

// lookForPurges sets the field purged to whether a purge has erased frames in the log of the store that was backed up,
// up to the restored moment.
func (r *restore) lookForPurges(ctx context.Context) error {
	part, ok := r.living()
	if !ok {
		return nil
	}
	to := part.to
	switch {
	case r.s.LSN != 0:
		to = min(to, r.s.LSN+1)
	case !r.s.Time.IsZero():
		to = min(to, max(r.end, r.until+1))
	}
	var err error
	r.purged, err = part.past.Erased(ctx, part.from, to)
	if err != nil && r.holed && ctx.Err() == nil {
		err = nil // follow has reported it
	}
	return err
}

// living returns the range that the restore reads from the log of the store that was backed up; ok is false if the
// restore does not read that log.
func (r *restore) living() (stretch, bool) {
	last := r.past[len(r.past)-1]
	return last, r.s.Living != nil && last.past == r.s.Living
}

// deletedLater collects the keys of the documents that were deleted after the restored moment in the store that was
// backed up.
func (r *restore) deletedLater(ctx context.Context) error {
	r.deleted = map[string]bool{}
	part, _ := r.living()
	for e, err := range part.past.Entries(ctx, part.from, part.to) {
		if err != nil {
			return err
		}
		if e.Delete && e.LSN >= r.end {
			r.deleted[e.Key] = true
		}
	}
	return nil
}
