package scopes

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/working"
)

// RebuildScope rebuilds a scope whose file cannot be read, from log and archive. It returns a
// description of the result, or "" if the scope can be read.
func (ws *Scopes) RebuildScope(ctx context.Context, file string) (string, error) {
	key, err := ws.scopeNamed(ctx, file)
	if err != nil {
		return "", err
	}
	of, err := working.ParseScope(key)
	if err != nil {
		return "log and archive have no entries of the scope in this file", nil
	}
	s := ws.acquire(of)
	defer ws.release(s)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.sync(ctx); err == nil || !errors.Is(err, errs.ErrCorrupt) {
		return "", err
	}
	version := ws.engine.State().Work(key) // before reading the log: another goroutine may be writing to the scope
	is, last, missing, err := s.past(ctx)
	if err != nil {
		return "", err
	}
	how := is.summary(missing)
	tick, _ := ws.Tick()
	e := &working.LogEntry{At: working.Moment{Time: ws.engine.Env().Clock().UnixMicro(), Tick: max(is.state.Tick(), tick)},
		State: is.state}
	w := wal.Entry{Key: s.logKey(), Kind: record.KindPut, Cause: wal.CauseUpkeep}
	rec := record.Record{Previous: last}
	if is.state.Empty() {
		how = "log and archive have no entry of the scope"
		w.Kind, w.Delete = record.KindDelete, true
		e.State, e.Fresh, e.Version = nil, true, ws.engine.Log().Applied()
	} else {
		e.Version = is.state.Version() + 1
		is.state.Edited(e.Version)
		f := working.File{Scope: of, State: is.state, Store: uuid.UUID(ws.engine.Log().UUID()).String(), LSN: last,
			Time: is.time}
		if rec.Doc, err = f.Encode(); err != nil {
			return "", err
		}
	}
	rec.Line = e.Head()
	w.Value, w.Inflated = ws.engine.Codec().Encode(nil, &rec)
	_, err = ws.engine.Append(ctx,
		&wal.Batch{Entries: []wal.Entry{w}, Preconditions: []wal.Precondition{{Key: s.logKey(), LSN: version}}})
	s.state, s.ahead = nil, nil
	return how, err
}

// recall is called if a scope's state cannot be read because of the error cause. It replaces the state by the
// state that results from the entries in the log and the archive. The new state is as of an entry of the log, so
// other users of the scope in this process need not be informed. If the log and the archive have no entry of the
// scope, recall returns cause.
func (s *scope) recall(ctx context.Context, cause error) error {
	ws := s.ws
	s.mu.Lock()
	defer s.mu.Unlock()
	breaks := ws.engine.State().Breaks()
	is, _, missing, err := s.past(ctx)
	if err != nil {
		return err
	}
	if is.n == 0 {
		return cause
	}
	s.state, s.lsn, s.time, s.breaks = is.state, is.lsn, is.time, breaks
	s.ahead, s.edited, s.file, s.lacks, s.whole = nil, false, believed{}, lacks{}, wholeAt{}
	ws.engine.Env().Logger.Error("working memory was rebuilt: its file cannot be used",
		"scope", s.key, "err", cause, "how", is.summary(missing))
	ws.engine.Env().Event(env.Event{Kind: env.EventCorruption, ID: s.key, Path: s.path(),
		Err: cause, Note: is.summary(missing)})
	return nil
}

// scopeNamed returns the key of the scope whose file has this name; "" if it is found neither in the file nor in the
// log.
func (ws *Scopes) scopeNamed(ctx context.Context, file string) (key string, err error) {
	if key, err := ws.scopeOf(file); err == nil {
		return key, nil
	}
	for e, err := range ws.engine.Log().Past().Entries(ctx, wal.Mark{LSN: 0}, ws.engine.Log().Durable()) {
		if err != nil {
			if ctx.Err() != nil || !errors.Is(err, errs.ErrCorrupt) && !errors.Is(err, errs.ErrTruncated) {
				return "", err
			}
			continue
		}
		if len(e.Key) > 1 && e.Key[0] == record.Working && kind.Scopes.FileName(e.Key[1:]) == file {
			return strings.Clone(e.Key[1:]), nil
		}
	}
	return "", nil
}

// played is the state that results from applying n log entries of a scope.
type played struct {
	loggedWork
	state *working.State
	n     int
}

func (p *played) summary(missing bool) string {
	how := fmt.Sprintf("%d entries of log and archive were applied", p.n)
	if missing {
		how += "; some earlier entries are missing"
	}
	return how
}

// past applies all entries of the scope that the log and the archive have. It returns the resulting state and the
// position of the last entry. missing reports whether entries from the beginning of the scope are missing.
func (s *scope) past(ctx context.Context) (p played, last wal.LSN, missing bool, err error) {
	ws := s.ws
	p.state = working.NewState()
	missing = true
	var grown size
	for e, err := range ws.engine.Log().Past().Entries(ctx, wal.Mark{LSN: 0}, ws.engine.Log().Durable()) {
		if err != nil {
			if ctx.Err() != nil || !errors.Is(err, errs.ErrCorrupt) && !errors.Is(err, errs.ErrTruncated) {
				return p, 0, false, err
			}
			missing = true
			continue
		}
		if e.Key != s.logKey() {
			continue
		}
		view, err := state.Read(&e)
		if err != nil {
			continue
		}
		body, err := ws.engine.Codec().Doc(&view, scopeLimit)
		if err != nil {
			continue
		}
		entry, err := working.DecodeLogEntry(view.Line, body)
		if err != nil {
			continue
		}
		if entry.Fresh = entry.Fresh || e.Delete; entry.Fresh || entry.State != nil {
			missing, p.n = false, 0
		}
		if view.Previous != last && !entry.Fresh && entry.State == nil {
			missing = true
		}
		p.state, p.time, p.lsn, p.n, last = entry.Play(p.state), e.Time, e.LSN, p.n+1, e.LSN
		if err := grown.check(p.state, int64(view.Size()), e.LSN); err != nil {
			return p, 0, false, err
		}
	}
	if at := ws.engine.State().Work(s.key); state.IsWork(at) {
		last = at
	}
	if p.state.Empty() && missing && p.n > 0 { // the entry that created the scope is missing
		attach := &working.Delta{Changes: []working.Change{{Kind: working.ChangeAttach}}}
		p.state.Play(working.Moment{Time: p.time.UnixMicro(), Tick: p.state.Tick()}, p.state.Version()+1, attach)
	}
	return p, last, missing, nil
}
