package s3

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/varve-db/varve/segment"
)

// leftAfter is the age from which the bytes of a snapshot without a description count as left by a process that was
// killed. If the process is in fact alive and only slow, its Save fails, because Save reads all bytes again before it
// writes the description.
const leftAfter = 48 * time.Hour

// Prune removes the oldest entries; see remote.Remote. It also removes what killed processes have left.
func (r *Remote) Prune(ctx context.Context, epoch uint64, pos segment.LSN) (removed int, err error) {
	// Listed before the head is replaced: see the package comment.
	var listed []string
	for _, folder := range []string{dataFolder, listFolder} {
		for o, err := range r.names(ctx, folder) {
			if err != nil {
				return 0, err
			}
			if isRandom(o.name, folder) {
				listed = append(listed, o.name)
			}
		}
	}
	floor := uint64(0)
	gone := func(l *listRef) bool { return l.Epoch < epoch || l.Epoch == epoch && l.End <= pos }
	err = r.entries(ctx, func(d *document) { floor = d.newest().Number }, gone, func(e *entry) (bool, error) {
		if e.Epoch > epoch || e.Epoch == epoch && e.To.LSN > pos {
			floor = min(floor, e.Number)
			return false, nil
		}
		return true, nil
	})
	if err != nil {
		return 0, err
	}
	if floor == 0 {
		return 0, nil // without entries there are no objects either, except for what the next prune removes
	}
	var now *document
	err = r.change(ctx, func(d *document) (bool, error) {
		if floor > d.Floor {
			removed = int(floor - d.Floor) // kept if the answer to the first request was lost
			d.raise(floor)
		}
		now = d
		return true, nil
	})
	if err != nil {
		return 0, err
	}
	named := map[string]bool{}
	if err := r.named(ctx, now, named); errors.Is(err, fs.ErrNotExist) {
		return removed, nil // the other prune removes what is not named
	} else if err != nil {
		return removed, err
	}
	for _, name := range listed {
		if err := ctx.Err(); err != nil {
			return removed, err
		}
		if !named[name] {
			if err := r.remove(ctx, name); err != nil {
				return removed, err
			}
		}
	}
	return removed, r.sweepSnapshots(ctx)
}

// raise sets the floor of the head, the number of the oldest entry that is kept. It removes lists and entries below
// the floor from the head, but never the newest entry.
func (d *document) raise(floor uint64) {
	d.Floor = floor
	for len(d.Lists) > 0 && d.Lists[0].Last < floor {
		d.Lists = d.Lists[1:]
	}
	for len(d.Entries) > 1 && d.Entries[0].Number < floor {
		d.Entries = d.Entries[1:]
	}
	raw := d.raw
	d.raw = nil
	for i := range d.Entries {
		if e := &d.Entries[i]; e.Object == "" {
			b := raw[e.At : e.At+e.Size]
			e.At = int64(len(d.raw))
			d.raw = append(d.raw, b...)
		}
	}
}

// named adds to names the names of all objects to which the head d refers, directly or through a list. If another
// prune has removed a list in the meantime, the error matches fs.ErrNotExist: without the list it is unknown which
// objects are in use.
func (r *Remote) named(ctx context.Context, d *document, names map[string]bool) error {
	for i := range d.Entries {
		names[d.Entries[i].Object] = true
	}
	return r.namedByLists(ctx, d, d.Lists, names)
}

func (r *Remote) namedByLists(ctx context.Context, d *document, lists []listRef, names map[string]bool) error {
	for i := range lists {
		ref := &lists[i]
		if ref.Last < d.Floor {
			continue
		}
		names[ref.Object] = true
		l, err := r.loadList(ctx, ref)
		if err != nil {
			return err
		}
		for j := range l.Entries {
			if l.Entries[j].Number >= d.Floor {
				names[l.Entries[j].Object] = true
			}
		}
		if err := r.namedByLists(ctx, d, l.Lists, names); err != nil {
			return err
		}
	}
	return nil
}

// sweepSnapshots removes the bytes of each snapshot that has no description, if its newest object is older than
// leftAfter.
func (r *Remote) sweepSnapshots(ctx context.Context) error {
	described, newest := map[uuid.UUID]bool{}, map[uuid.UUID]time.Time{}
	for o, err := range r.names(ctx, snapshotFolder) {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(o.name, snapshotFolder)
		if text, ok := strings.CutSuffix(name, metaSuffix); ok {
			if id, err := uuid.Parse(text); err == nil {
				described[id] = true
			}
		} else if text, _, ok := strings.Cut(name, "/"); ok {
			if id, err := uuid.Parse(text); err == nil && o.time.After(newest[id]) {
				newest[id] = o.time
			}
		}
	}
	for id, at := range newest {
		if described[id] || r.o.Clock().Sub(at) < leftAfter {
			continue
		}
		// Described since the listing?
		if _, err := r.tagOf(ctx, metaName(id)); err == nil {
			continue
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := r.dropParts(ctx, id); err != nil {
			return err
		}
	}
	return nil
}
