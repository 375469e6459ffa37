package scopes

import (
	"context"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/wal"
)

// lacks describes the log entries that are not in a scope's file yet, as far as this process knows.
type lacks struct {
	from  wal.LSN // position of the first such entry
	since time.Time
	bytes int64
	over  errs.InflatedError // sizes of those entries that are compressed more than 64-fold
}

// LagRate is the rate, in bytes per second, at which the background may write the file of one scope. So a file of n
// bytes may lag behind the log for n/LagRate seconds.
const LagRate = 1 << 20

// take records a log entry that is not in the scope's file yet.
func (l *lacks) take(e *loggedWork) {
	if l.bytes == 0 {
		l.from, l.since = e.lsn, e.time
	}
	l.bytes += max(1, e.bytes)
	if e.over {
		l.over.Documents, l.over.Packed, l.over.Size = l.over.Documents+1, l.over.Packed+e.bytes, l.over.Size+e.size
	}
}

// MayLag reports whether the file of a scope may stay behind the log for now. It also returns the position of the
// first log entry that the file does not include. The file may not stay behind if that entry is below the position
// flushed.
func (ws *Scopes) MayLag(ctx context.Context, key string, flushed wal.LSN) (first wal.LSN, ok bool) {
	w := ws
	w.mu.RLock()
	at := w.open[key] != nil
	w.mu.RUnlock()
	if !at { // the scope is not in memory: if it is small, reading it costs more than writing its file
		if info,
			err := ws.engine.Env().FS.Stat(ws.engine.Kinds().Scopes.Path(kind.Scopes.FileName(key))); err != nil ||
			info.Size < w.tuning.Least {
			return 0, false
		}
	}
	s, err := ws.acquireKey(key)
	if err != nil {
		return 0, false
	}
	defer w.release(s)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sync(ctx) != nil || s.edited || s.state.Empty() {
		return 0, false
	}
	l, size := &s.lacks, s.file.size
	if size < w.tuning.Least || l.bytes == 0 || l.from < flushed || l.bytes >= size/2 {
		return 0, false
	}
	since := ws.engine.Env().Clock().Sub(l.since)
	return l.from, since >= 0 && since < time.Duration(size)*time.Second/LagRate
}
