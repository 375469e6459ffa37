package scopes

import (
	"context"
	"errors"
	"fmt"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/working"
)

// The log has changes, so what a change replaces or deletes can be found again only if log and archive
// reach back to an entry that does not need the file: the first one of the scope, or one with the whole
// document. After a clone, a restore or a repair of the log, and when the archive was cut, they do not:
// the file alone has the text, and the next flush replaces it. The rule is that of package commit for
// documents: then the bytes go into the log first, here as an entry with the whole document.

// chainMost bounds the entries that are read to find one that does not need the file.
const chainMost = 64

// copyDue reports whether the log needs the whole document before some changes; mu is held, and the
// state is current.
func (s *scope) copyDue(ctx context.Context, changes []*working.Delta, tick int64) (bool, error) {
	if s.state.Empty() || !s.state.Loses(changes, tick) {
		return false, nil
	}
	log := s.ws.Engine.Log
	reach := log.Reach()
	defer reach.Close()
	if s.whole.at != 0 && s.whole.breaks == s.breaks && (s.whole.file || reach.Live(s.whole.at)) {
		return false, nil
	}
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
			return false, err
		}
		if e.entry.Fresh || e.entry.State != nil {
			s.whole = wholeAt{at: at, breaks: s.breaks}
			return false, nil
		}
		at = e.previous
	}
	if at == 0 || !reach.Keeps(s.logKey(), at) {
		return true, nil
	}
	if _, since := log.Kept(); s.state.Created().Before(since) {
		return true, nil
	}
	s.whole = wholeAt{at: s.lsn, breaks: s.breaks}
	return false, nil
}

// wholeAt says that log and archive have all of a scope up to an entry, or a copy of the file does.
type wholeAt struct {
	at     wal.LSN
	breaks uint64
	file   bool
}

// copyFirst writes an entry with the whole document of the scope, which changes nothing; mu is not held.
// A document that is too large for a commit is copied to quarantine instead.
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
	e := &working.LogEntry{At: working.Moment{Time: ws.Engine.Env.Clock().UnixMicro(), Tick: now.Tick()}, Version: now.Version(), State: now}
	b, err := s.documentEntry(version, e)
	if err != nil {
		return err
	}
	_, err = ws.Engine.Log.Append(ctx, b)
	var conflict *wal.ConflictError
	switch {
	case errors.As(err, &conflict):
		return nil // judged again by the caller
	case errors.Is(err, errs.ErrTooLarge), errors.Is(err, errs.ErrBatchTooLarge):
		return s.copyFile()
	case errors.Is(err, errs.ErrDiskFull):
		return fmt.Errorf("%w; the log has no copy of scope %s, and no room for one: make room, or remove the scope without a copy: memctl purge --working %s",
			err, human.Quote(s.key), human.Quote(s.key))
	case err != nil:
		return fmt.Errorf("copying scope %s into the log before it is changed: %w", human.Quote(s.key), err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead = nil
	s.whole = wholeAt{at: b.Entries[0].LSN, breaks: s.breaks}
	ws.Flusher.BeatInline()
	return nil
}

// copyFile gives the file of the scope a second name in quarantine.
func (s *scope) copyFile() error {
	env := s.ws.Engine.Env
	q := docfile.NewQuarantine(docfile.Layout{FS: env.FS, Root: env.Dir, FileMode: env.FileMode, FolderMode: env.FolderMode}, env.Clock)
	where, err := q.Keep(s.ws.Engine.Kinds.Scopes.Path(docfile.FileName(s.key)), docfile.Note{
		Why:  "the scope was changed, and the log had no copy of it and no room for one in a commit",
		From: s.path(), ID: s.key, When: env.Clock().UTC(),
	})
	if err != nil {
		return fmt.Errorf("copying scope %s to quarantine before it is changed: %w", human.Quote(s.key), err)
	}
	env.Logger.Warn("working memory was copied to quarantine before a change: the log has no room for it in a commit", "scope", s.key, "copy", where)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.whole = wholeAt{at: max(s.lsn, 1), breaks: s.breaks, file: true}
	return nil
}

// copyForDrop is copyFirst if a drop of the scope needs it.
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
