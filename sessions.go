package varve

import (
	"context"
	"iter"
	"time"

	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/retention"
)

// Touch counts an access to memories: access_count and last_access_time. Counts
// are collected for a minute, then written as an Update each; those of a
// process that is killed meanwhile are lost.
func (st *Store) Touch(ctx context.Context, ids ...string) error {
	if err := st.engine.Begun(); err != nil {
		return err
	}
	defer st.engine.Ended()
	if err := st.engine.Writable(); err != nil {
		return err
	}
	return st.kept.Touch(ctx, ids)
}

// Session is what the index knows of one session. A session is there as long as it has
// a memory.
type Session struct {
	ID       string
	Memories int64
	Bytes    int64     // of their files
	First    time.Time // when the first of them was made
	Last     time.Time // when one of them was last written
}

// Sessions are the sessions of a store. A memory belongs to the session that its
// metadata.session_id names, if any.
type Sessions struct{ st *Store }

// Sessions returns those of the store.
func (st *Store) Sessions() Sessions { return Sessions{st} }

// All yields the sessions, by id as JSON writes it, in one pass over the index and
// in memory that does not grow with it. What is written meanwhile is seen or not. A part
// of the index that cannot be read yields its error, and the rest goes on.
func (ss Sessions) All(ctx context.Context) iter.Seq2[Session, error] {
	return engine.Reading(ctx, ss.st.engine, func(yield func(Session, error) bool) {
		ss.st.kept.Each(ctx, func(s retention.Session, err error) bool { return yield(Session(s), err) })
	})
}

// Get returns one session, or ErrNotFound when it has no memory.
func (ss Sessions) Get(ctx context.Context, id string) (Session, error) {
	if err := ss.st.engine.Begun(); err != nil {
		return Session{}, err
	}
	defer ss.st.engine.Ended()
	s, err := ss.st.kept.One(ctx, id)
	return Session(s), err
}

// Delete deletes the memories that a session has, and says how many; ErrNotFound when there are
// none. They go in one commit: a reader sees all of them or none. What others put into the session
// meanwhile is as if put after it, and stays; what they take out of it stays too. One commit takes
// half a segment of the log, with the default size about 300,000 deletions. A larger session goes
// in several, each of them whole; when an error or a crash comes between them, the rest is still
// there, and the call may be repeated.
func (ss Sessions) Delete(ctx context.Context, id string) (int64, error) {
	if err := ss.st.engine.Begun(); err != nil {
		return 0, err
	}
	defer ss.st.engine.Ended()
	if err := ss.st.engine.Writable(); err != nil {
		return 0, err
	}
	return ss.st.kept.Delete(ctx, id)
}

// SweepOptions says which sessions Sessions.Sweep takes. One that either of the two
// means is taken.
type SweepOptions struct {
	IdleFor time.Duration // those in which nothing was written for so long; 0: none
	Keep    int           // all but so many, those that were written to last; 0: none
	Apply   bool          // delete them; else they are only named
}

// SessionSweep is what became of a session that Sessions.Sweep has taken.
type SessionSweep struct {
	Session       // as it was found
	Deleted int64 // memories
	Spared  bool  // it was used meanwhile
}

// Sweep deletes sessions that nobody uses any more, those unused longest first,
// and says which. Without Apply it changes nothing. They are chosen before anything is
// locked, and each is deleted in a commit that holds only if nothing in it was changed
// and nothing put into it since: one that is used meanwhile is spared. A session that one
// commit cannot take goes in several, as with Delete; then what is used after the
// first is spared alone.
func (ss Sessions) Sweep(ctx context.Context, o SweepOptions) ([]SessionSweep, error) {
	list, err := ss.st.kept.SweepSessions(ctx, retention.SweepOptions(o))
	var all []SessionSweep
	for _, s := range list {
		all = append(all, SessionSweep{Session: Session(s.Session), Deleted: s.Deleted, Spared: s.Spared})
	}
	return all, err
}
