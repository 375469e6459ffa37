package scopes

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/working"
	"github.com/varve-db/varve/writer"
)

const (
	// sweepEach is the maximum number of expired items that one change removes. It is larger than the number of items
	// that a change can add, so that expired items do not accumulate.
	sweepEach = 4
	// entryBytes is the size in bytes above which no further operation is added to a log entry.
	entryBytes = 1 << 20
	// entryOps is the maximum number of operations in one log entry.
	entryOps = 1024
	// scopeLimit is the maximum size in bytes of a scope file that is read. scopeMost is the maximum size that
	// operations may create. The limits differ because a file can be larger than the changes that led to it.
	scopeLimit = 1 << 30
	scopeMost  = places.StoredMost / 2
)

// asked is an operation on a scope that waits for its commit.
type asked struct {
	r    *working.Request
	bare bool           // do not copy the lost data into the log first, because it is being purged
	by   *writer.Writer // writer from the caller's context; nil if the context has no writer
	res  working.Result
	err  error
	done chan struct{}
}

// sameWriter returns the number of operations at the start of list that have the same writer: a log entry has only
// one writer.
func sameWriter(list []*asked) int {
	for i, q := range list {
		if first := list[0].by; q.by != first && (q.by == nil || first == nil || *q.by != *first) {
			return i
		}
	}
	return len(list)
}

// write carries out an operation that changes the scope. Operations that wait while a commit is in progress
// are committed together in the next one.
func (s *scope) write(ctx context.Context, q *asked) (working.Result, error) {
	if s.ws.engine.Env().System.Inline {
		list := []*asked{q}
		s.commit(ctx, list, s.ws.flusher.Pressure(ctx, func() int64 { return bytesAsked(list) }))
		s.ws.flusher.RoundInline(ctx)
		return q.res, q.err
	}
	q.done, q.by = make(chan struct{}), engine.WriterIn(ctx)
	s.waiting.Lock()
	s.queue = append(s.queue, q)
	if !s.busy {
		s.busy = true
		s.ws.engine.Operations().Add(1) // the caller's operation is counted too, so Close waits for both
		go s.drain(s.ws.engine.Progress().Context)
	}
	s.waiting.Unlock()
	select {
	case <-q.done:
		return q.res, q.err
	case <-ctx.Done():
	}
	if s.withdraw(q) {
		return working.Result{}, ctx.Err()
	}
	select {
	case <-q.done:
		return q.res, q.err
	default:
		return working.Result{}, fmt.Errorf("%w: %w", errs.ErrOutcomeUnknown, ctx.Err())
	}
}

// withdraw removes an operation from the scope's queue, and reports whether it was still there.
func (s *scope) withdraw(q *asked) bool {
	s.waiting.Lock()
	defer s.waiting.Unlock()
	for i, other := range s.queue {
		if other == q {
			s.queue = append(s.queue[:i:i], s.queue[i+1:]...)
			return true
		}
	}
	return false
}

// drain commits the scope's waiting operations until the queue is empty.
func (s *scope) drain(ctx context.Context) {
	defer s.ws.engine.Operations().Done()
	for {
		s.waiting.Lock()
		n := min(len(s.queue), entryOps)
		var err error
		if bytes := bytesAsked(s.queue[:n]); n > 0 {
			s.waiting.Unlock()
			// Wait before operations are taken from the queue, so that a caller whose context ends
			// can withdraw its operation.
			err = s.ws.flusher.Pressure(ctx, func() int64 { return bytes })
			s.waiting.Lock()
			n = min(len(s.queue), n)
		}
		if n == 0 {
			s.busy, s.queue = false, nil
			s.waiting.Unlock()
			return
		}
		list := s.queue[:n:n]
		s.queue = s.queue[n:]
		s.waiting.Unlock()
		for len(list) > 0 {
			part := list[:sameWriter(list)]
			n := s.commit(engine.ByWriter(ctx, part[0].by), part, err)
			for _, q := range list[:n] {
				s.ws.engine.Progress().Ended("working memory of "+s.key, q.err)
				close(q.done)
			}
			list = list[n:]
		}
	}
}

// commit carries out operations from the start of list, as many as fit into one log entry, and returns their number.
// Each operation is applied to the state after the previous one. The entry is written only if no other process has
// changed the scope. If another process has changed it, commit carries out the operations again on the new state. If
// refused is not nil, all operations fail with the error refused.
func (s *scope) commit(ctx context.Context, list []*asked, refused error) int {
	for {
		n, again, err := len(list), false, refused
		if err == nil {
			n, again, err = s.try(ctx, list)
		}
		if again {
			continue
		}
		if err != nil {
			for _, q := range list[:n] {
				q.res, q.err = working.Result{}, err
			}
		}
		return n
	}
}

// frameBytes is the approximate number of bytes that an operation takes in the log, without its value.
const frameBytes = 200

// bytesAsked returns the approximate number of bytes that the operations will take in the log.
func bytesAsked(list []*asked) (n int64) {
	for _, q := range list {
		n += frameBytes
		switch op := q.r.Op.(type) {
		case working.OpPut:
			for i := range op.Items {
				n += int64(len(op.Items[i].Value))
			}
		case working.OpAppend:
			n += int64(len(op.Text))
		}
	}
	return n
}

func (s *scope) try(ctx context.Context, list []*asked) (n int, again bool, err error) {
	ws := s.ws
	s.mu.Lock()
	version, err := s.current(ctx)
	unread := errors.Is(err, errs.ErrCorrupt) && dropsOnly(list)
	if unread {
		version, err = s.giveUp() // a scope that cannot be read can be dropped
	}
	if err != nil {
		s.mu.Unlock()
		return len(list), false, err
	}
	if s.edited {
		s.mu.Unlock()
		if err := s.adopt(ctx); err != nil {
			return len(list), false, err
		}
		return 0, true, nil
	}
	if s.ahead == nil || s.aheadOf != s.lsn {
		s.ahead, s.aheadOf = s.state.Clone(), s.lsn
	}
	base := s.lsn
	e, body, n, err := s.judge(list)
	gone, due := s.ahead.Empty(), false
	if err == nil && !unread && !list[0].bare && len(e.Changes) > 0 {
		due, err = s.copyDue(ctx, e.Changes, e.At.Tick)
	}
	if err != nil || due {
		s.ahead = nil // ahead may include operations that will not be written
	}
	s.mu.Unlock()
	if due {
		if err := s.copyFirst(ctx); err != nil {
			return n, false, err
		}
		return 0, true, nil
	}
	if err != nil || len(e.Changes) == 0 {
		return n, false, err
	}
	b := &wal.Batch{
		Preconditions: []wal.Precondition{{Key: s.logKey(), LSN: version}},
		Entries:       []wal.Entry{s.entry(e, body, base, gone)},
	}
	_, err = ws.engine.Append(ctx, b)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.ahead = nil
		var conflict *wal.ConflictError
		if errors.As(err, &conflict) {
			ws.engine.Env().Logger.Debug("another process changed the scope: repeating the operations", "scope", s.key,
				"expected", conflict.LSN, "found", conflict.Found)
			return 0, true, nil
		}
		return n, false, err
	}
	ws.engine.Commits().Add(1)
	s.wrote(base, &b.Entries[0], e)
	return n, false, nil
}

// entry returns the log entry for the changes e, which are encoded in body. previous is the position of the
// scope's previous entry. empty means that the scope is empty after the changes; the entry is then a deletion.
func (s *scope) entry(e *working.LogEntry, body []byte, previous wal.LSN, empty bool) wal.Entry {
	value, inflated := s.ws.engine.Codec().Encode(nil,
		&record.Record{Previous: previous, Created: e.Fresh, Line: e.Head(), Doc: body})
	w := wal.Entry{Key: s.logKey(), Kind: record.KindPut, Delete: empty, Value: value, Inflated: inflated}
	if empty {
		w.Kind = record.KindDelete
	}
	return w
}

func (s *scope) logKey() string { return string(rune(record.Working)) + s.key }

// current brings the scope's state up to date, and returns the version of the scope that a precondition of a commit
// needs. The caller holds mu.
func (s *scope) current(ctx context.Context) (wal.LSN, error) {
	for {
		if err := s.sync(ctx); err != nil {
			return 0, err
		}
		at := s.ws.engine.State().Work(s.key)
		switch {
		case state.IsWork(at) && at == s.lsn:
			return at, nil
		case !state.IsWork(at) && s.newest.Load() <= s.lsn && s.lsn < s.ws.engine.Log().Applied() &&
			s.breaks == s.ws.engine.State().Breaks():
			return at, nil
		}
		// This process's last entry is not in the overlay yet, or another entry arrived.
		if err := s.ws.engine.Log().CatchUp(ctx); err != nil {
			return 0, err
		}
	}
}

// judge applies operations to ahead, which is the scope's state after all commits in progress, as many as fit into one
// log entry. It returns the entry for these operations, the encoded body of the entry, and the number of operations.
// The caller holds mu.
func (s *scope) judge(list []*asked) (e *working.LogEntry, body []byte, n int, err error) {
	now, logged := s.moment(marksAny(list))
	e = &working.LogEntry{At: logged, Fresh: s.ahead.Empty(), Version: s.ahead.Version() + 1}
	if e.Fresh {
		// Higher than the version of any earlier scope of this name: that one began at an earlier
		// position too, and its version grew by one when the log grew by more.
		e.Version = max(e.Version, s.ws.engine.Log().Applied())
	}
	most := min(entryBytes, int(s.ws.engine.Log().Limit()/4)) // operations that fit one by one must fit together too
	for _, q := range list {
		d, res, err := s.ahead.Judge(now, q.r)
		if err == nil && s.grows(&d) {
			err = &errs.FieldError{Field: "scope", Value: human.Quote(s.key), Limit: fmt.Sprintf("%d bytes", s.ws.tuning.Most),
				Err: fmt.Errorf("%w: the scope's file has about %d bytes; delete checkpoints or values", errs.ErrTooLarge,
					s.file.size+s.grown)}
		}
		if err == nil && !d.Empty() {
			line, err := d.Encode()
			if err != nil {
				return e, nil, n + 1, err
			}
			if n > 0 && len(body)+len(line) > most {
				break
			}
			body = append(append(body, line...), '\n')
			s.ahead.Play(e.At, e.Version+uint64(len(e.Changes)), &d)
			s.ahead.Sweep(s.ahead.Tick(), sweepEach)
			e.Changes = append(e.Changes, &d)
		}
		if err == nil {
			s.ahead.Complete(q.r.Op, &res)
		}
		q.res, q.err = res, err
		n++
	}
	return e, body, n, nil
}

// grows reports whether the scope has already reached its maximum size and the change d would still make it larger. The
// caller holds mu.
func (s *scope) grows(d *working.Delta) bool {
	if s.file.size+s.grown < s.ws.tuning.Most {
		return false
	}
	for _, c := range d.Changes {
		switch c.Kind {
		case working.ChangePut, working.ChangeAppend, working.ChangeMark, working.ChangeRestore:
			return true
		}
	}
	return false
}

// wrote updates the scope's state in memory by a log entry that this process has just committed. If the state already
// has the entry, because this process has read the entry from the log meanwhile, wrote leaves the state unchanged. base
// is the position of the scope's previous entry. The caller holds mu.
func (s *scope) wrote(base wal.LSN, w *wal.Entry, e *working.LogEntry) {
	if s.state != nil && s.lsn == base {
		if s.play(context.Background(), []loggedWork{{lsn: w.LSN, time: w.Time, bytes: int64(len(w.Value)), entry: e,
			whole: e.Fresh}}) != nil {
			s.state = nil // the next read reports the error
		}
	}
	s.grown += int64(len(w.Value))
	if s.aheadOf = w.LSN; s.state == nil || s.lsn != w.LSN {
		s.ahead = nil
	}
	s.ws.flusher.BeatInline()
}

// documentEntry returns a batch of one log entry that has the scope's whole document. The batch has the condition that
// the newest entry of the scope is version. The caller must hold mu, which documentEntry releases.
func (s *scope) documentEntry(version wal.LSN, e *working.LogEntry) (*wal.Batch, error) {
	store := uuid.UUID(s.ws.engine.Log().UUID()).String()
	f := working.File{Scope: s.scope, State: e.State, Store: store, LSN: s.lsn, Time: s.time}
	base := s.lsn
	s.mu.Unlock()
	doc, err := f.Encode()
	if err != nil {
		return nil, err
	}
	return &wal.Batch{
		Preconditions: []wal.Precondition{{Key: s.logKey(), LSN: version}},
		Entries:       []wal.Entry{s.entry(e, doc, base, false)},
	}, nil
}

// adopt writes the scope's whole state to the log after its file was edited by hand, so that the edit becomes the
// newest change. If the file was not edited, or another process changes the scope meanwhile, adopt writes nothing and
// returns nil; the caller checks again.
func (s *scope) adopt(ctx context.Context) error {
	ws := s.ws
	s.mu.Lock()
	version, err := s.current(ctx)
	if err != nil || !s.edited {
		s.mu.Unlock()
		return err
	}
	now := s.state.Clone()
	_, at := s.moment(false)
	e := &working.LogEntry{At: at, Version: now.Version() + 1, State: now}
	now.Edited(e.Version)
	b, err := s.documentEntry(version, e)
	if err != nil {
		return err
	}
	b.Entries[0].Cause = wal.CauseEdited
	_, err = ws.engine.Append(ctx, b)
	var conflict *wal.ConflictError
	if errors.As(err, &conflict) {
		return nil // the caller checks again
	}
	if err != nil {
		return fmt.Errorf("adopting the edit of %s: %w", s.path(), err)
	}
	ws.engine.Env().Logger.Info("working memory that was edited by hand was adopted", "scope", s.key, "file", s.path())
	ws.engine.Health().Edit()
	ws.engine.Env().Event(env.Event{Kind: env.EventAdopted, ID: s.key, LSN: b.Entries[0].LSN, Path: s.path()})
	return nil
}

func dropsOnly(list []*asked) bool {
	for _, q := range list {
		if _, ok := q.r.Op.(working.OpDrop); !ok {
			return false
		}
	}
	return true
}

// giveUp is called if the scope's state cannot be read. It replaces the state by an empty one, so that the scope can be
// dropped, and returns the version of the scope. The caller holds mu.
func (s *scope) giveUp() (wal.LSN, error) {
	at := s.ws.engine.State().Work(s.key)
	s.state, s.ahead, s.edited, s.whole = working.NewState(), nil, false, wholeAt{}
	s.breaks, s.lsn = s.ws.engine.State().Breaks(), 0
	if state.IsWork(at) {
		s.lsn = at
	}
	attach := &working.Delta{Changes: []working.Change{{Kind: working.ChangeAttach}}}
	_, now := s.moment(false)
	s.state.Play(now, s.ws.engine.Log().Applied(), attach)
	return at, nil
}
