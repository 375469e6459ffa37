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

// readingApart is how far the time of a frame may be ahead of the clock before the frame also records what the
// clock showed. Batches and bursts move the times of frames ahead by a microsecond per entry, and time
// services set clocks back by less than a second. A store in which nothing else happens never records a
// reading, and never needs FeatureFields. In exchange an entry may seem up to a second later than it was.
const readingApart = int64(time.Second / time.Microsecond)

// apart reports whether a frame with this time must also record the clock's reading, because the two are too
// far apart.
func apart(frame, reading int64) bool { return frame-reading > readingApart }

// errNoFields is the result of a request whose entries need readings, in a store that lacks FeatureFields: the
// caller raises the feature and tries again. No exported function returns it.
var errNoFields = errors.New("wal: the store lacks FeatureFields")

// lacksFields reports whether the next entries must record clock readings, the store lacks the feature for
// that, and the feature may be raised now. The caller holds append.lock and mu, and has read everything up to
// the tail.
func (l *FileLog) lacksFields() bool {
	now := l.now()
	return apart(l.state.lastTime+1, now) && l.Features()&FeatureFields == 0 && !l.fieldsRefused(now)
}

// lacksFieldsNow is like lacksFields, for the holder of append.lock.
func (l *FileLog) lacksFieldsNow() bool {
	l.state.mu.Lock()
	defer l.state.mu.Unlock()
	return l.lacksFields()
}

// refusedFor is how long a log records no clock readings after FeatureFields could not be raised: a write must
// not fail, nor wait each time, because an older program has the store open.
const refusedFor = int64(time.Minute / time.Microsecond)

func (l *FileLog) fieldsRefused(now int64) bool {
	at := l.refused.Load()
	return at != 0 && now >= at && now-at < refusedFor
}

// raiseFields raises FeatureFields. If that fails, entries are written without clock readings for the time
// refusedFor. It returns an error only if ctx has ended or the log was replaced. The caller may hold no lock
// except flush.lock, and that only with a ctx of Held.In.
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
	l.o.Logger.Warn("the clock is behind the newest entry, and the log cannot record its reading: history shows the time "+
		"of that entry instead", "err", err)
	return nil
}

// RaiseNow is like Raise, for a caller that can do without the features: if a program that does not know one
// of them has the store open, RaiseNow fails at once instead of waiting. The caller may hold flush.lock, with
// a ctx of Held.In. The holder of an Exclusive gets errs.ErrLocked, unless the store already has the features.
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

// In returns a context that marks its user as the holder of flush.lock. The holder must pass it to Append,
// which may have to raise a feature, and needs flush.lock for that. Without this context Append would wait for
// the lock that its caller holds.
func (h *Held) In(ctx context.Context) context.Context { return context.WithValue(ctx, heldKey{}, h) }
