package varve

import (
	"context"
	"iter"
	"time"

	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/history"
	"github.com/varve-db/varve/writer"
)

// Writer describes the program, process and agent that changed a store: Number, Since, Program, Host, PID, Started,
// Agent, Session, Client, ClientVersion and Token; see package writer. The store assigns the number. A writer with the
// number 0, and one without names, is unknown.
type Writer = writer.Writer

// WithWriter returns a context for calls that write in the name of another writer than Options.Writer, such as
// one of several clients of this process. Empty fields of w have the values of Options.Writer. A name that is
// longer than Options.Writer allows is cut.
func WithWriter(ctx context.Context, w Writer) context.Context { return engine.By(ctx, w) }

// UnknownWriter, passed to WrittenBy, is the writer of the versions whose writer is unknown.
const UnknownWriter = engine.UnknownWriter

// Commit describes the changes of one commit.
type Commit struct {
	LSN     uint64         // position of its first change
	Next    uint64         // position of the entry after the commit
	Time    time.Time      // the clock's time at the commit; that of a later commit may be earlier
	Writer  Writer         // Number 0: unknown
	Changes []CommitChange // the changes that passed the filters, in the order of the log
}

// CommitChange describes the change of a commit to one document.
type CommitChange struct {
	LSN  uint64 // the resulting version
	Kind string // "memory", "assembly", "note" or "working memory"
	ID   string // id of the document; for working memory, the key of the scope
	What string // "created", "changed" or "deleted"
	// Cause is why the store made the change: "expired", "evicted" to make room, "edited" by hand in its file, "upkeep"
	// for an embedding or a count of accesses, or "undo". Empty: a caller requested the change, or the store did not
	// record writers yet.
	Cause    string
	Previous uint64 // the previous version, which may be a deletion; 0 if there was none
}

// LogOptions select commits, and the changes of each commit. The zero value selects all.
type LogOptions struct {
	Since, Until time.Time // select commits by Commit.Time: at or after Since, and before Until; zero: no bound
	By           string    // number or name of a writer, or UnknownWriter; "": any
	Session      *string   // changes of the memories and of the working memory of a session
	ID           *string   // changes of this id
	Deleted      bool      // deletions only
	Before       uint64    // commits that begin before this position; 0: all
}

// Log yields the commits of all processes that the log and the archive still have, the newest first. If a part of the
// log cannot be read, Log yields the error and continues with older commits. With LogOptions.Session, Log omits the
// deletion of a memory if no earlier version of the memory is kept. Log reads everything that is kept and selected, and
// holds the ids of one log segment in memory. The store must not be closed from within the loop.
func (st *Store) Log(ctx context.Context, o LogOptions) iter.Seq2[Commit, error] {
	return engine.Whole(ctx, func(yield func(Commit, error) bool) {
		f := history.LogFilter{Since: o.Since, Until: o.Until, Session: o.Session, ID: o.ID, Deleted: o.Deleted,
			Before: o.Before}
		if o.By != "" {
			var err error
			if f.By, f.First, err = st.writtenBy(ctx, o.By); err != nil {
				yield(Commit{}, err)
				return
			}
		}
		st.inner.History.Log(ctx, f, func(c history.Commit, err error) bool {
			out := Commit{LSN: c.LSN, Next: c.Next, Time: c.Time, Writer: c.Writer}
			for _, ch := range c.Changes {
				out.Changes = append(out.Changes, CommitChange(ch))
			}
			return yield(out, err)
		})
	})
}

// writtenBy returns a function match, which reports whether a version was written by the writer name. The arguments of
// match are the writer's number in the version (Memory.By) and the version. No version below the position first was
// written by that writer. writtenBy first reads the new entries of the log, so it also knows a writer that another
// process has just registered.
func (st *Store) writtenBy(ctx context.Context,
	name string) (match func(number uint32, version uint64) bool, first uint64, err error) {
	if err := st.inner.Engine.BeginUse(); err != nil {
		return nil, 0, err
	}
	defer st.inner.Engine.EndUse()
	if err := st.inner.Engine.CatchUp(ctx); err != nil {
		return nil, 0, err
	}
	return st.inner.Engine.WrittenBy(ctx, name)
}

// WriterOf returns the writer of a version, from the writer's number (Memory.By). If the writer is unknown, Number is 0
// in the result. If the description of the writer is lost, only Number is set.
func (ad Admin) WriterOf(number uint32, version uint64) Writer {
	return ad.st.inner.Engine.Writer(number, version)
}

// Writers returns the writers whose description the store has, in the order in which they first wrote.
func (ad Admin) Writers(ctx context.Context) ([]Writer, error) {
	if err := ad.st.inner.Engine.BeginUse(); err != nil {
		return nil, err
	}
	defer ad.st.inner.Engine.EndUse()
	if err := ad.st.inner.Engine.CatchUp(ctx); err != nil {
		return nil, err
	}
	t, err := ad.st.inner.Engine.Writers(ctx)
	return t.All(), err
}
