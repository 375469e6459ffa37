package wal

import (
	"context"
	"errors"
	"time"

	"github.com/varve-db/varve/errs"
)

// The time of a frame increases strictly, so one commit with the clock years ahead puts the times of all later
// commits into that future, a microsecond apart. Therefore an entry whose frame time is later than the clock at
// its commit also has the clock's reading, as a field of the frame (package segment): Entry.Reading.

// readingApart is the time in microseconds by which the time of a frame must be ahead of the clock, so that the frame
// also records the reading of the clock. Batches and bursts move the times of frames ahead by a microsecond per entry,
// and time services set clocks back by less than a second. Because of this tolerance, most stores never record readings
// and never need FeatureFields. In exchange, an entry may seem up to a second later than it was.
const readingApart = int64(time.Second / time.Microsecond)

// apart reports whether the time of a frame is so far ahead of the clock's reading that the frame must also record the
// reading.
func apart(frame, reading int64) bool { return frame-reading > readingApart }

// errNoFields means that entries must record clock readings but the store lacks FeatureFields. The caller raises the
// feature and tries again. No exported function returns errNoFields.
var errNoFields = errors.New("wal: the store lacks FeatureFields")

// lacksFields reports whether the feature FeatureFields should be raised now: the next entries must record clock
// readings, the store lacks the feature, and raising it has not failed recently. The caller holds append.lock and
// state.mu, and has read the log up to the tail.
func (l *FileLog) lacksFields() bool {
	now := l.now()
	return apart(l.state.lastTime+1, now) && l.Features()&FeatureFields == 0 && !l.fieldsRefused(now)
}

// lacksFieldsNow is like lacksFields, but locks state.mu itself. The caller holds only append.lock.
func (l *FileLog) lacksFieldsNow() bool {
	l.state.mu.Lock()
	defer l.state.mu.Unlock()
	return l.lacksFields()
}

// refusedFor is the time in microseconds for which a log records no clock readings after FeatureFields could not be
// raised. Otherwise each write would have to wait or fail while an older program has the store open.
const refusedFor = int64(time.Minute / time.Microsecond)

func (l *FileLog) fieldsRefused(now int64) bool {
	at := l.refused.Load()
	return at != 0 && now >= at && now-at < refusedFor
}

// raiseFields raises FeatureFields. If that fails, entries are written without clock readings for the time refusedFor.
// raiseFields returns an error only if ctx has ended or the log was replaced. The caller must not hold a lock, except
// flush.lock if ctx was returned by Held.In.
func (l *FileLog) raiseFields(ctx context.Context) error {
	err := l.RaiseNow(ctx, FeatureFields)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, errs.ErrReplaced) {
		return err
	}
	l.refused.Store(l.now())
	l.o.Logger.Warn("the clock is behind the newest entry, and the log cannot record the reading of the clock: the "+
		"history shows the time of that entry for new entries", "err", err)
	return nil
}

// RaiseNow is like Raise, for a caller that can work without the features: if a program that does not know them has the
// store open, RaiseNow returns an error at once. The caller may hold flush.lock if ctx was returned by Held.In. For the
// holder of an Exclusive, RaiseNow returns errs.ErrLocked, unless the store already has the features.
func (l *FileLog) RaiseNow(ctx context.Context, f Features) error {
	if known, err := l.mayRaise(f); known || err != nil {
		return err
	}
	if l.exclusive(ctx) {
		return errs.ErrLocked
	}
	if held, ok := ctx.Value(heldKey{}).(*Held); ok && held.proves(l) == nil {
		raised, err := l.RaiseFlushing(held, f)
		if err == nil && !raised {
			err = errs.ErrLocked
		}
		return err
	}
	if list, more := l.lacking(f); len(list) > 0 || more != "" {
		return l.inTheWay(f, list, more, nil)
	}
	return l.Raise(ctx, f)
}

type heldKey struct{}

// In returns a context that marks the caller as the holder of flush.lock. The holder must call Append with this
// context. Append may have to raise a feature and needs flush.lock for that; without the context it would wait for the
// lock that its caller holds.
func (h *Held) In(ctx context.Context) context.Context { return context.WithValue(ctx, heldKey{}, h) }
