package varve

import (
	"context"
	"iter"
	"time"

	"github.com/varve-db/varve/internal/history"
)

// Change is one committed change of one memory or one assembly, by whatever process.
type Change struct {
	LSN      uint64    // the version that it made; the changes of a batch have rising ones
	Next     uint64    // where to go on: Watch(ctx, Next)
	Time     time.Time // of the commit
	Kind     string    // "memory" or "assembly"
	ID       string
	Deleted  bool
	Memory   Memory   // as it was written; zero when deleted
	Assembly Assembly // likewise
	More     bool     // the batch goes on in the next change
}

// FromNow, given to Watch, is the position of what is to come.
const FromNow uint64 = history.FromNow

// Watch yields every change from a position on, in the order of their commits, each
// once, and then waits for more until ctx ends, which is the last error, the store is
// closed, or the loop is left. Where to start: at FromNow for what is to come,
// at the Next of the last change seen to go on, at Admin.PositionAt a time, at 0 for as far
// back as log and archive reach.
//
// It reads as the loop asks for it, and keeps nothing from being released: a loop that
// is slow is read for from the archive, and once that has moved on the error is a
// *TruncatedError, whose Oldest is the oldest position that still works: list the
// memories, then watch from there. Changes of one commit come only once all of them are read,
// however slow the loop is. To go on later with whole commits, keep the Next of a change without
// More.
//
// A change that cannot be decoded is yielded with an error, and the next ones follow. Any
// other error is the last.
func (st *Store) Watch(ctx context.Context, from uint64, filters ...WatchFilter) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		var f history.Filter
		for _, filter := range filters {
			filter.narrow(&f)
		}
		st.history.Watch(ctx, from, f, func(c history.Change, err error) bool { return yield(Change(c), err) })
	}
}

// WatchFilter chooses changes. Several filters all have to pass. The zero one passes all.
type WatchFilter struct {
	kind    string // "": any
	session *string
}

func (w WatchFilter) narrow(f *history.Filter) {
	if w.kind != "" {
		f.Kind = w.kind
	}
	if w.session != nil {
		f.Session, f.Only = *w.session, true
	}
}

// WatchKind passes the changes of one kind: "memory" or "assembly".
func WatchKind(kind string) WatchFilter { return WatchFilter{kind: kind} }

// WatchSession passes the changes of the memories of one session, and the deletions of
// those that were of it; also the deletions of which that is no longer known.
func WatchSession(id string) WatchFilter { return WatchFilter{session: &id} }

// Changes yields what is committed from a position on, by whatever process, in the
// order of the commits, and ends with what is committed when it is called, where
// Store.Watch waits for more. It is for those who keep something that follows from
// memories and bring it up to date when they are asked: begin with Stats().Durable,
// list, then go on from the last change's Next. Positions that come from elsewhere
// are not looked at; errors are those of Watch.
func (ad Admin) Changes(ctx context.Context, from uint64) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		ad.st.history.Until(ctx, from, func(c history.Change, err error) bool { return yield(Change(c), err) })
	}
}

// PositionAt is where the first change begins that was committed at a time or later:
// from there on Watch yields them. A *TruncatedError when log and archive do not reach
// back to that time.
func (ad Admin) PositionAt(ctx context.Context, t time.Time) (uint64, error) {
	if err := ad.st.engine.Begun(); err != nil {
		return 0, err
	}
	defer ad.st.engine.Ended()
	if err := ad.st.engine.Sight(ctx); err != nil {
		return 0, err
	}
	return ad.st.engine.Log.Past().Since(ctx, t, ad.st.engine.Log.Durable())
}
