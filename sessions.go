package varve

import (
	"context"
	"iter"
	"time"

	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/retention"
)

// Touch counts one access to each of the given memories, in access_count and last_access_time. Counts are collected for
// a minute and then written, one Update for each memory; if the process is killed meanwhile, they are lost.
func (st *Store) Touch(ctx context.Context, ids ...string) error {
	if err := st.inner.Engine.BeginUse(); err != nil {
		return err
	}
	defer st.inner.Engine.EndUse()
	if err := st.inner.Engine.Writable(); err != nil {
		return err
	}
	return st.inner.Retention.Touch(ctx, ids)
}

// Session is the summary of one session, computed from the index. A session exists as long as it has a memory.
type Session struct {
	ID       string
	Memories int64
	Bytes    int64     // bytes of the files of its memories
	First    time.Time // when the first memory was created
	Last     time.Time // when a memory was last written
}

// Sessions are the sessions of a store. A memory belongs to the session that its
// metadata.session_id names, if any.
type Sessions struct{ st *Store }

// Sessions returns the sessions of the store.
func (st *Store) Sessions() Sessions { return Sessions{st} }

// All yields the sessions, ordered by the JSON encoding of their ids. It may or may not include writes that are made
// during the loop. If a part of the index cannot be read, All yields the error and continues.
func (ss Sessions) All(ctx context.Context) iter.Seq2[Session, error] {
	return engine.Reading(ctx, ss.st.inner.Engine, func(yield func(Session, error) bool) {
		ss.st.inner.Retention.Each(ctx, func(s retention.Session, err error) bool { return yield(Session(s), err) })
	})
}

// Get returns one session, or ErrNotFound if it has no memory.
func (ss Sessions) Get(ctx context.Context, id string) (Session, error) {
	if err := ss.st.inner.Engine.BeginUse(); err != nil {
		return Session{}, err
	}
	defer ss.st.inner.Engine.EndUse()
	s, err := ss.st.inner.Retention.One(ctx, id)
	return Session(s), err
}

// Delete deletes the memories of a session and returns their number. If the session has no memories, the error is
// ErrNotFound. All are deleted in one commit: a reader sees all of them or none. Memories that other processes add to
// the session during the call are kept. Memories that other processes move to another session during the call are kept
// too.
//
// One commit has at most the size of half a segment of the log, which is about 300,000 deletions with the default
// size. A larger session is deleted in several commits. If an error or a crash occurs between two commits, the
// remaining memories still exist, and the call may be repeated.
func (ss Sessions) Delete(ctx context.Context, id string) (int64, error) {
	if err := ss.st.inner.Engine.BeginUse(); err != nil {
		return 0, err
	}
	defer ss.st.inner.Engine.EndUse()
	if err := ss.st.inner.Engine.Writable(); err != nil {
		return 0, err
	}
	return ss.st.inner.Retention.Delete(ctx, id)
}

// SweepOptions select the sessions for Sessions.Sweep. A session is selected if one of the two
// criteria applies.
type SweepOptions struct {
	IdleFor time.Duration // sessions without a write for this long; 0 selects none
	Keep    int           // all sessions except the Keep that were written to last; 0 selects none
	Apply   bool          // delete the sessions; otherwise they are only returned
}

// SessionSweep is the result for a session that Sessions.Sweep has selected.
type SessionSweep struct {
	Session       // the session as it was when it was selected
	Deleted int64 // number of memories that were deleted
	Spared  bool  // the session was used after it was selected, and is kept
	Doubted bool  // the session is unused only according to a clock that may be wrong, and is kept
}

// Sweep deletes sessions that are no longer used, starting with those unused for the longest time, and returns them.
// Without Apply it changes nothing. Sweep selects the sessions before it locks anything, and deletes each of them in a
// commit that fails if the session was changed after the selection. So a session that is used in the meantime is kept.
// A session too large for one commit is deleted in several, as Delete does; then only the memories that are used after
// the first of these commits are kept.
//
// A wrong clock does not by itself cause deletions. A session is kept (SessionSweep.Doubted) if IdleFor has passed for
// it only because the clock was set ahead while the machine was running. A session that was last written to before the
// machine was started is kept until the store has read the clock twice, one hour apart, unless another session was
// written to at least IdleFor after it.
func (ss Sessions) Sweep(ctx context.Context, o SweepOptions) ([]SessionSweep, error) {
	list, err := ss.st.inner.Retention.SweepSessions(ctx, retention.SweepOptions(o))
	var all []SessionSweep
	for _, s := range list {
		all = append(all, SessionSweep{Session: Session(s.Session), Deleted: s.Deleted, Spared: s.Spared,
			Doubted: s.Doubted})
	}
	return all, err
}
