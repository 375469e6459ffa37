package scopes

import (
	"context"
	"errors"
	"fmt"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/working"
)

// The log has changes, not states. So what a change replaces or deletes can be recovered only if
// log and archive reach back to an entry that does not depend on the file: the scope's first entry,
// or an entry with the whole document. After a clone, a restore or a repair of the log, and after
// the archive was cut, they do not: only the file has the text, and the next flush replaces the
// file. In that case the bytes are first written to the log as an entry with the whole document, as
// package commit does for documents.

// The decision uses positions only. The time at which the scope was created, perhaps by the clock
// of another machine, proves nothing.

// chainMost is the maximum number of log entries of a scope that are read in search of an entry that does not depend on
// the scope's file.
const chainMost = 64

// copyDue reports whether the changes, made at the given tick, would delete data that the log and the archive cannot
// reproduce without the scope's file. Then the scope's whole document must first be copied into the log. The caller
// holds mu, and the state is up to date.
func (s *scope) copyDue(ctx context.Context, changes []*working.Delta, tick int64) (bool, error) {
	if s.state.Empty() || !s.state.Loses(changes, tick) || s.whole.file && s.whole.at == 0 {
		return false, nil
	}
	reach := s.ws.engine.Log().Archive().Reach()
	defer reach.Close()
	if s.whole.at == 0 {
		at, err := s.findWhole(ctx, reach)
		if err != nil || at == 0 {
			return err == nil, err
		}
		s.whole.at = at
	}
	return !reach.Keeps(s.logKey(), s.whole.at) || !reach.Keeps(s.logKey(), s.lsn), nil
}

// findWhole returns the position of the newest log entry of the scope that does not depend on the scope's file. It
// examines the newest chainMost entries, as far as they are in the part of the log that is cheap to read, and returns 0
// if it finds no such entry. It is used if the file does not record that position (working.File.Whole).
func (s *scope) findWhole(ctx context.Context, reach *wal.Reach) (wal.LSN, error) {
	at := s.lsn
	for range chainMost {
		if at == 0 || !reach.Live(at) {
			break
		}
		e, err := s.ws.workEntry(ctx, s.key, at)
		if errors.Is(err, engine.ErrMoved) || errors.Is(err, errs.ErrTruncated) {
			break
		}
		if err != nil {
			return 0, err
		}
		if e.whole {
			return at, nil
		}
		at = e.previous
	}
	return 0, nil
}

// wholeAt has the position of the newest log entry of the scope that depends neither on earlier entries nor on the
// file. If the log and the archive have all entries from that position on, they can reproduce the scope.
type wholeAt struct {
	at   wal.LSN // the position; 0: unknown, or, if file is set, no entry was written since the copy was made
	file bool    // a copy of the file is in quarantine, and at is the first entry after that copy was made
}

// copyFirst writes a log entry with the scope's whole document, which does not change the scope. If the document is too
// large for a commit, copyFirst copies it to quarantine instead. The caller must not hold mu.
func (s *scope) copyFirst(ctx context.Context) error {
	ws := s.ws
	s.mu.Lock()
	version, err := s.current(ctx)
	if err != nil || s.edited || s.state.Empty() {
		s.mu.Unlock()
		return err
	}
	now := s.state.Clone()
	now.Skip(1)
	e := &working.LogEntry{At: working.Moment{Time: ws.engine.Env().Clock().UnixMicro(), Tick: now.Tick()},
		Version: now.Version(), State: now}
	b, err := s.documentEntry(version, e)
	if err != nil {
		return err
	}
	b.Entries[0].Cause = wal.CauseUpkeep
	_, err = ws.engine.Append(ctx, b)
	var conflict *wal.ConflictError
	switch {
	case errors.As(err, &conflict):
		return nil // the caller checks again
	case errors.Is(err, errs.ErrTooLarge), errors.Is(err, errs.ErrBatchTooLarge):
		return s.copyFile()
	case errors.Is(err, errs.ErrDiskFull):
		return fmt.Errorf("%w; the log has no copy of scope %s, and no room for one → make room, or remove the scope "+
			"without a copy: memctl purge --working %s",
			err, human.Quote(s.key), human.Quote(s.key))
	case err != nil:
		return fmt.Errorf("copying scope %s into the log before it is changed: %w", human.Quote(s.key), err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead = nil
	s.whole = wholeAt{at: b.Entries[0].LSN}
	ws.flusher.BeatInline()
	return nil
}

// copyFile links or copies the file of the scope into quarantine.
func (s *scope) copyFile() error {
	env := s.ws.engine.Env()
	s.mu.Lock()
	is, before := wholeAt{at: s.lacks.from, file: true}, s.lsn
	s.mu.Unlock()
	q := docfile.NewQuarantine(docfile.Layout{FS: env.FS, Root: env.Dir, FileMode: env.FileMode,
		FolderMode: env.FolderMode}, env.Clock)
	where, err := q.Keep(s.ws.engine.Kinds().Scopes.Path(kind.Scopes.FileName(s.key)), docfile.Note{
		Why:  "the scope was changed, and the log had no copy of it and no room for one in a commit",
		From: s.path(), ID: s.key, When: env.Clock().UTC(),
	})
	if err != nil {
		return fmt.Errorf("copying scope %s to quarantine before it is changed: %w", human.Quote(s.key), err)
	}
	env.Logger.Warn("working memory was copied to quarantine before a change: the log has no room for it in a commit",
		"scope", s.key, "copy", where)
	s.mu.Lock()
	defer s.mu.Unlock()
	if is.at != 0 || s.lsn == before { // otherwise the copy may lack entries that were flushed meanwhile
		s.whole = is
	}
	return nil
}

// copyForDrop is called before the scope is dropped. If the log could not reproduce the scope otherwise, it calls
// copyFirst.
func (s *scope) copyForDrop(ctx context.Context) error {
	s.mu.Lock()
	_, err := s.current(ctx)
	due := false
	if err == nil && !s.edited {
		due, err = s.copyDue(ctx, []*working.Delta{{Changes: []working.Change{{Kind: working.ChangeDrop}}}}, s.state.Tick())
	}
	s.mu.Unlock()
	if err != nil || !due {
		return err
	}
	return s.copyFirst(ctx)
}
