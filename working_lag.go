package varve

import (
	"context"
	"time"

	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/wal"
)

// A scope's file is written as a whole. So that a large one of which a little changes
// all the time does not keep the disk busy with the same bytes, the rounds in the
// background let it lag: it is written when half as much has changed, or after so many
// seconds as it has MiB. What is flushed stands still then before the first entry that
// the file lacks, and with it the log that is kept: below flushed the files are the truth, of
// scopes too. What else was put into files behind it is remembered by who has put it
// there (filed); another flusher, or one after a failure, does it once more.
//
// Flush, Close, purge, a log that has passed its budget and a file that somebody edits or
// deletes meanwhile (Files.Look, Files.Gone) let nothing lag.

// lag is under flush.lock.
type lag struct {
	scopes map[string]bool // whose files lag
	filed  wal.LSN         // up to here all else is in files
}

// lacks is what a scope's file does not have, as far as this process knows.
type lacks struct {
	from  wal.LSN // the first entry
	since time.Time
	bytes int64
}

// lagRate is how many bytes a second a file in the background is written with.
const lagRate = 1 << 20

// take notes an entry.
func (l *lacks) take(e *loggedWork) {
	if l.bytes == 0 {
		l.from, l.since = e.lsn, e.time
	}
	l.bytes += max(1, e.bytes)
}

// hold takes out of what a round puts into files those scopes that may lag, and says
// up to where the files are the truth after it. It is called once, before anything
// of working memory is put there.
func (f *filing) hold(ctx context.Context, c wal.Checkpoint, to wal.Mark, m merge) (wal.Mark, error) {
	st := f.st
	behind := &st.flusher.lagging
	for key := range behind.scopes {
		f.worked.add(key)
	}
	behind.scopes = nil
	f.held = true
	if m != mergeWhenDue || f.distrusted || f.repeats || int64(to.LSN-c.Spilled.LSN) > st.engine.Env.System.SpillBytes {
		return to, nil
	}
	first := to.LSN
	for _, key := range f.worked.take() {
		from, ok := st.mayLag(ctx, key, c.Flushed.LSN)
		if !ok {
			f.worked.add(key)
			continue
		}
		if behind.scopes == nil {
			behind.scopes = map[string]bool{}
		}
		behind.scopes[key] = true
		first = min(first, from)
	}
	if first == to.LSN {
		return to, nil
	}
	mark, err := st.engine.Log.MarkBefore(ctx, first)
	if err != nil || mark.LSN < c.Flushed.LSN {
		return c.Flushed, err
	}
	return mark, nil
}

// mayLag says whether the file of a scope need not be written now, and the first entry
// that it lacks.
func (st *Store) mayLag(ctx context.Context, key string, flushed wal.LSN) (first wal.LSN, ok bool) {
	w := &st.working
	w.mu.RLock()
	at := w.open[key] != nil
	w.mu.RUnlock()
	if !at { // nobody has it at hand: what it is costs more to know than to write, if it is small
		if info, err := st.engine.Env.FS.Stat(st.engine.Kinds.Scopes.Path(docfile.FileName(key))); err != nil || info.Size < w.least {
			return 0, false
		}
	}
	s, err := st.acquireKey(key)
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
	if size < w.least || l.bytes == 0 || l.from < flushed || l.bytes >= size/2 {
		return 0, false
	}
	since := st.engine.Env.Clock().Sub(l.since)
	return l.from, since >= 0 && since < time.Duration(size)*time.Second/lagRate
}
