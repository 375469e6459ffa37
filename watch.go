package varve

import (
	"context"
	"iter"
	"time"

	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/history"
)

// Change is one committed change of one memory, assembly or note, by any process.
type Change struct {
	LSN      uint64    // the resulting version; versions increase within a batch
	Next     uint64    // position after the change, to continue: Watch(ctx, Next)
	Time     time.Time // the clock's time at the commit; that of a later change may be earlier
	Kind     string    // "memory", "assembly" or "note"
	ID       string
	Deleted  bool
	Memory   Memory   // the memory as it was written; zero if it was deleted
	Assembly Assembly // the assembly as it was written; zero if it was deleted
	Document []byte   // the bytes of a note; nil when deleted, or when only its properties changed
	More     bool     // the next change is of the same batch
	Writer   Writer   // the writer of the change; Number 0: unknown
	Cause    string   // reason why the store made the change, see CommitChange; "": a caller requested it
}

// FromNow, passed to Watch as the position, selects only changes that are made after the call.
const FromNow uint64 = history.FromNow

// Watch yields every change from a position on, in the order of the commits, each once. Then it waits for more
// changes. It ends if ctx ends (the error of ctx is then the last value), if the store is closed, or if the caller
// leaves the loop. Start at FromNow for new changes only. Start at the Next of the last change to continue. Start at
// the result of Admin.PositionAt for the changes since a time. Start at 0 for everything that the log and the archive
// have.
//
// Watch reads only when the loop requests a change, and does not delay the release of old log. If the loop is slow,
// Watch reads from the archive. If the archive no longer has the position, the error is a *TruncatedError, whose
// Oldest is the oldest position that still works: list the memories, then watch from there. Watch reads all changes of
// a commit before it yields the first of them, so a slow loop still gets whole commits. To continue later at the
// beginning of a commit, store the Next of a change whose More is false.
//
// If a change cannot be decoded, Watch yields an error and continues. Any other error is the last value.
func (st *Store) Watch(ctx context.Context, from uint64, filters ...WatchFilter) iter.Seq2[Change, error] {
	return engine.Whole(ctx, func(yield func(Change, error) bool) {
		var f history.Filter
		for _, filter := range filters {
			filter.narrow(&f)
		}
		st.inner.History.Watch(ctx, from, f, func(c history.Change, err error) bool { return yield(Change(c), err) })
	})
}

// WatchFilter selects changes. A change must pass all of several filters. The zero value passes
// all.
type WatchFilter struct {
	kind    string // "": any kind
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

// WatchKind passes the changes of documents of one kind: "memory", "assembly" or "note".
func WatchKind(kind string) WatchFilter { return WatchFilter{kind: kind} }

// WatchSession passes the changes of the memories of one session, and deletions of memories that
// were in it, including deletions for which the session is no longer known.
func WatchSession(id string) WatchFilter { return WatchFilter{session: &id} }

// Changes yields the changes of all processes from a position on, in the order of the commits. Unlike Store.Watch, it
// does not wait for more: it ends at the last commit before the call. It is for callers that keep data derived from
// memories and update this data on demand. Such a caller notes Stats().Durable, lists the memories, and passes the
// noted position to the first call; each later call begins at the Next of the last change. Positions from other sources
// are not checked. The errors are those of Watch.
func (ad Admin) Changes(ctx context.Context, from uint64) iter.Seq2[Change, error] {
	return engine.Whole(ctx, func(yield func(Change, error) bool) {
		ad.st.inner.History.Until(ctx, from, func(c history.Change, err error) bool { return yield(Change(c), err) })
	})
}

// PositionAt returns the position of the first change whose commit time, by the clock of the writer, is t or later.
// Watch yields the changes from this position on. No earlier change has a time of t or later. If the clock was set
// back, later changes may have a time before t. If the log and the archive do not reach back to t, the error is a
// *TruncatedError.
func (ad Admin) PositionAt(ctx context.Context, t time.Time) (uint64, error) {
	if err := ad.st.inner.Engine.BeginUse(); err != nil {
		return 0, err
	}
	defer ad.st.inner.Engine.EndUse()
	if err := ad.st.inner.Engine.CatchUp(ctx); err != nil {
		return 0, err
	}
	return ad.st.inner.Engine.Log().Past().Since(ctx, t, ad.st.inner.Engine.Log().Durable())
}
