package varve

import (
	"context"
	"iter"
	"time"

	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/history"
)

// Change is one committed change of one memory or one assembly, by any process.
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

// FromNow, passed to Watch, is the position of the next change.
const FromNow uint64 = history.FromNow

// Watch yields every change from a position on, in the order of the commits, each once. It then waits for more until
// ctx ends, whose error is the last value, the store is closed, or the loop is left. Start at FromNow for new changes
// only, at the Next of the last change seen to continue, at Admin.PositionAt a time, or at 0 for everything that the
// log and the archive have.
//
// Watch reads when the loop requests a change, and does not delay the release of old log. If the loop is slow, Watch
// reads from the archive. Once the archive no longer has the position, the error is a *TruncatedError, whose Oldest is
// the oldest position that still works: list the memories, then watch from there. Changes of one commit are yielded
// only after all of them were read, however slow the loop is. To continue later at the beginning of a commit, keep the
// Next of a change without More.
//
// For a change that cannot be decoded Watch yields an error, and continues. Any other error is the last.
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

// WatchKind passes the changes of one kind: "memory" or "assembly".
func WatchKind(kind string) WatchFilter { return WatchFilter{kind: kind} }

// WatchSession passes the changes of the memories of one session, and deletions of memories that
// were in it, including deletions for which the session is no longer known.
func WatchSession(id string) WatchFilter { return WatchFilter{session: &id} }

// Changes yields the changes from a position on, by any process, in the order of the commits, and ends at the last
// commit before the call, where Store.Watch waits for more. It is for callers that keep data derived from memories and
// update it on demand: begin with Stats().Durable, list, then continue from the last change's Next. Positions from
// other sources are not checked; errors are those of Watch.
func (ad Admin) Changes(ctx context.Context, from uint64) iter.Seq2[Change, error] {
	return engine.Whole(ctx, func(yield func(Change, error) bool) {
		ad.st.inner.History.Until(ctx, from, func(c history.Change, err error) bool { return yield(Change(c), err) })
	})
}

// PositionAt returns the position of the first change that was committed at a clock time of t or later: Watch yields
// the changes from there on. If the clock was set back meanwhile, later changes may have earlier times; no earlier
// change has a time of t or later. The error is a *TruncatedError if the log and the archive do not reach back to that
// time.
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
