package varve

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/remote/sender"
)

// CopyPurge describes whether purges of the store must still be carried out in its remote copy, and when.
type CopyPurge struct {
	URL string // of the copy
	// Pending reports whether the copy still has something that was purged.
	Pending bool
	// Due is the time at which the process that sends will carry out in the copy all purges that were made until then;
	// zero: no purge waits, or the purge does not wait for others.
	Due time.Time
}

// Purged reports whether the remote copy still has data that was purged in the store. The error matches ErrNotFound if
// the store has no copy.
func (rc Offsite) Purged(ctx context.Context) (p CopyPurge, err error) {
	places := rc.st.inner.Places()
	pl, err := places.Load(ctx)
	if err != nil {
		return p, err
	}
	p.URL = pl.URL
	if !pl.Sends() {
		return p, fmt.Errorf("%s: %w: this store does not send to this place", pl.URL, errs.ErrNotFound)
	}
	b, err := places.Keeper().Load(ctx)
	if err != nil {
		return p, err
	}
	log := rc.st.inner.Engine.Log().Past()
	id, err := log.ID()
	if err != nil {
		return p, err
	}
	last, err := sender.PurgedOnly(log, b.Log)
	if err != nil {
		return p, err
	}
	p.Pending = b.Snapshot.Erase || b.Log != id.Epoch
	if last == id.Epoch && b.Log != id.Epoch && pl.Erase < id.Epoch {
		since := b.Purged.Since
		if b.Purged.Log == 0 {
			since = rc.st.inner.Engine.Env().Clock()
		}
		p.Due = since.Add(sender.Gathering).UTC()
	}
	return p, nil
}

// CopyPurgeError reports that a remote copy still has data that was purged in the store. The error matches Err, the
// reason.
type CopyPurgeError struct {
	Place string
	Err   error
}

// Error returns the message, in one line.
func (e *CopyPurgeError) Error() string {
	return fmt.Sprintf("the copy at %s still has data that was purged in the store: %v", e.Place, e.Err)
}

// Unwrap returns the reason.
func (e *CopyPurgeError) Unwrap() error { return e.Err }

// purgeLook is the interval at which PurgeNow checks whether another process has completed the purge.
const purgeLook = 200 * time.Millisecond

// PurgeNow removes from the remote copy what was purged in the store. It sends the store's log again, without the
// purged data, and a new snapshot. Then it removes everything earlier from the copy, except snapshots without purged
// data. Without a call of PurgeNow, the process that sends does the same later: one day after the first purge that the
// copy still lacks. If another process is sending, PurgeNow waits until that process has removed the data. If the copy
// may still have purged data, the error is a *CopyPurgeError. PurgeNow may be repeated.
func (rc Offsite) PurgeNow(ctx context.Context, r remote.Remote) error {
	p, e := rc.st.inner.Places(), rc.st.inner.Engine.Env()
	pl, err := p.Load(ctx)
	if err != nil {
		return err
	}
	id, err := rc.st.inner.Engine.Log().Past().ID()
	if err != nil {
		return err
	}
	if pl.Erase < id.Epoch {
		pl.Erase = id.Epoch
		if err := p.Save(pl); err != nil { // a process that sends begins again when the place changes
			return err
		}
	}
	failed := func(err error) error { return &CopyPurgeError{Place: r.Place(), Err: err} }
	for began := e.Clock().UTC(); ; {
		now, err := rc.Purged(ctx)
		if err != nil {
			return failed(err)
		}
		if !now.Pending {
			return nil
		}
		free, err := rc.sendIfFree(ctx, r)
		if free {
			now, perr := rc.Purged(ctx)
			switch {
			case perr != nil:
				return failed(errors.Join(err, perr))
			case !now.Pending:
				return nil // whatever failed afterwards
			case err == nil:
				err = errs.ErrConflict // purged again meanwhile
			}
		}
		if err != nil {
			return failed(err)
		}
		if s, ok := p.Status(); ok && s.Time.After(began) && (s.Error != "" || s.Snapping != "") {
			return failed(errors.New(s.Error + s.Snapping))
		}
		if err := e.Sleep(ctx, purgeLook); err != nil {
			return failed(err)
		}
	}
}

// sendIfFree sends everything to the remote copy, unless another process is sending. In that case it sends nothing,
// and free is false.
func (rc Offsite) sendIfFree(ctx context.Context, r remote.Remote) (free bool, err error) {
	if sends, err := rc.st.inner.Engine.Log().Processes().Followed(); err != nil || sends {
		return false, err
	}
	err = rc.Send(ctx, r)
	if errors.Is(err, errs.ErrLocked) {
		return false, nil
	}
	return true, err
}

// CopyLoss is the period whose moments a remote copy loses by a purge: they can no longer be cloned.
type CopyLoss struct {
	From, To time.Time // first moment that is lost, and the first moment after it that is not lost; both zero: none
}

// PurgeLoses returns the period whose moments could no longer be cloned from the remote copy if the given memories and
// assemblies were purged now. The period includes the moments lost by earlier purges that have not reached the copy
// yet. A moment is lost if it needs a snapshot with purged data, or log that the archive no longer has. If memories
// and assemblies are empty, all moments before now are lost. All other moments can still be cloned, without the purged
// data.
func (rc Offsite) PurgeLoses(ctx context.Context, r remote.Remote, memories, assemblies []string) (CopyLoss, error) {
	inner := rc.st.inner
	r, err := inner.OpenCopy(ctx, r, nil)
	if err != nil {
		return CopyLoss{}, err
	}
	src, err := inner.SentSource(ctx)
	if err != nil {
		return CopyLoss{}, err
	}
	b, err := inner.Places().Keeper().Load(ctx)
	if err != nil {
		return CopyLoss{}, err
	}
	list, err := r.Snapshots(ctx)
	if err != nil && !errors.Is(err, errs.ErrCorrupt) || len(list) == 0 {
		return CopyLoss{}, err
	}
	sender.SortSnapshots(list)
	clean, err := sender.Pending(ctx, src, &b)
	if err != nil {
		return CopyLoss{}, err
	}
	kinds := inner.Engine.Kinds()
	if len(memories)+len(assemblies) == 0 {
		clean = 0
	}
	if len(memories) > 0 {
		first, err := inner.Purger.First(ctx, kinds.Memories, memories)
		if err != nil {
			return CopyLoss{}, err
		}
		clean = min(clean, first)
	}
	if len(assemblies) > 0 {
		first, err := inner.Purger.First(ctx, kinds.Assemblies, assemblies)
		if err != nil {
			return CopyLoss{}, err
		}
		clean = min(clean, first)
	}
	base, err := src.Base(ctx)
	if err != nil {
		return CopyLoss{}, err
	}
	kept, err := sender.Clean(ctx, src.Past(), base, clean, list)
	if err != nil {
		return CopyLoss{}, err
	}
	loss := CopyLoss{From: list[0].Time.UTC(), To: inner.Engine.Env().Clock().UTC()}
	if len(kept) > 0 {
		loss.To = kept[0].Time.UTC()
	}
	if len(kept) > 0 && kept[0].ID == list[0].ID {
		loss = CopyLoss{}
	}
	return loss, nil
}
