package sender

import (
	"context"
	"math"
	"slices"

	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

// PurgedOnly returns the last epoch of the log that follows the given epoch through purges only. If no epoch follows
// the given one, or the next one has another reason than a purge, PurgedOnly returns the given epoch. A copy of the
// log up to the given epoch can be continued with the log of the returned epoch. But the copy still has the purged
// data.
func PurgedOnly(log *past.Log, epoch uint64) (uint64, error) {
	list, err := log.Endings()
	for _, e := range list {
		if e.Epoch <= epoch {
			continue
		}
		if e.Reason != past.Purged {
			break
		}
		epoch = e.Epoch
	}
	return epoch, err
}

// purgedOnly reports whether every epoch of the log after the given one was begun by a purge. Then the copy can be
// continued, see PurgedOnly.
func (s *Sender) purgedOnly(log *past.Log, epoch uint64) bool {
	id, err := log.ID()
	if err != nil {
		return false
	}
	last, err := PurgedOnly(log, epoch)
	return err == nil && last == id.Epoch
}

// gather records in the Binding that the data of purges up to the epoch log of the store's log must be removed from
// the remote later.
func (s *Sender) gather(ctx context.Context, log uint64) error {
	now := s.o.Clock()
	return s.rebind(ctx, func(b *Binding) {
		if b.Purged.Log == 0 {
			b.Purged.Since = now
		}
		b.Purged.Log = log
	})
}

// purgesDue reports whether the purges in b.Purged must be carried out at the remote now: the first of them has waited
// for Options.Gather, the clock was set back by that time, or Options.Erase requires it.
func (s *Sender) purgesDue(b *Binding) bool {
	return b.Log < s.o.Erase || s.o.Clock().Sub(b.Purged.Since).Abs() >= s.o.Gather
}

// erase records that purged data must be removed from the remote, except from snapshots that end at or before the
// position clean: these have no purged data. If required is false, erase does nothing.
func (d *Due) erase(required bool, clean segment.LSN) {
	switch {
	case !required:
	case d.Erase:
		d.Clean = min(d.Clean, clean)
	default:
		d.Erase, d.Clean = true, clean
	}
}

// cleanSince returns a position of the log: snapshots that end at or before this position have no data that was purged
// after the given epoch of the store's log. It returns 0 if no such position is known.
func cleanSince(ctx context.Context, source Source, epoch uint64) (segment.LSN, error) {
	list, err := source.Past().Endings()
	if err != nil {
		return 0, nil
	}
	after, known := segment.LSN(0), epoch == 0 && len(list) < past.MostEndings
	for _, e := range list {
		switch {
		case e.Epoch == epoch:
			after, known = e.Next, true
		case e.Epoch > epoch && e.Reason == past.RecordLost:
			return 0, nil
		}
	}
	if !known {
		return 0, nil
	}
	return source.Erased(ctx, after)
}

// Pending returns a position of the log: snapshots that end at or before this position have no data of the purges that
// have not reached the remote yet. It returns 0 if no such position is known, and the highest possible position if
// there are no such purges.
func Pending(ctx context.Context, source Source, b *Binding) (segment.LSN, error) {
	clean := segment.LSN(math.MaxUint64)
	if b.Snapshot.Erase {
		clean = b.Snapshot.Clean
	}
	if id, err := source.Past().ID(); err == nil && id.Epoch == b.Log {
		return clean, nil
	}
	since, err := cleanSince(ctx, source, b.Log)
	return min(clean, since), err
}

// keeps returns those snapshots in list that can stay at the remote after a purge: they have no purged data, and the
// pieces of the epoch of b complete them, even if they were made in an earlier epoch. list has the snapshots that were
// made before the purge.
func (s *Sender) keeps(ctx context.Context, b *Binding, list []remote.Snapshot) (kept []remote.Snapshot, err error) {
	if b.Snapshot.Clean == 0 || len(list) == 0 {
		return nil, nil
	}
	epochs, err := s.remote.Epochs(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(epochs, func(e remote.Epoch) bool { return e.Number == b.Epoch })
	if i < 0 {
		return nil, nil
	}
	return Clean(ctx, s.source.Past(), epochs[i].From, b.Snapshot.Clean, list)
}

// Clean returns those snapshots in list that the log completes and that have no purged data: they do not begin before
// the mark from, they end at or before the position clean, and they begin and end at marks that the log has.
func Clean(ctx context.Context, log *past.Log, from past.Mark, clean segment.LSN, list []remote.Snapshot) (
	kept []remote.Snapshot, err error) {
	has := func(m past.Mark) (bool, error) {
		if m == from {
			return true, nil
		}
		at, err := log.Chain(ctx, m.LSN)
		if err != nil && ctx.Err() != nil {
			return false, ctx.Err()
		}
		return err == nil && at == m, nil
	}
	for _, m := range list {
		if m.Begin.LSN < from.LSN || m.End.LSN > clean {
			continue
		}
		begins, err := has(m.Begin)
		if err != nil {
			return nil, err
		}
		ends, err := has(m.End)
		if err != nil {
			return nil, err
		}
		if begins && ends {
			kept = append(kept, m)
		}
	}
	return kept, nil
}
