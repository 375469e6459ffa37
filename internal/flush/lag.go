package flush

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/varve-db/varve/wal"
)

// A scope's file is written as a whole. Background rounds let it lag, so that a large scope with small, frequent
// changes does not make the disk write the same bytes all the time: the file is written when half as much has changed,
// or after as many seconds as it has MiB. Meanwhile the mark flushed stops before the first entry that the file lacks,
// and the log is kept from there: below flushed the files are authoritative, those of scopes included. The process that
// writes other changes behind that mark to files remembers how far it got (filed); another flusher, or one after a
// failure, writes them again.
//
// Flush, Close, purge, a log that has exceeded its budget, and a file that is edited or deleted meanwhile (Files.Look,
// Files.Gone) let nothing lag.

// lag is the set of working-memory scopes whose files lag behind the log. Only the holder of flush.lock uses it.
type lag struct {
	Scopes map[string]bool // scopes whose files lag
	filed  wal.LSN         // log position below which all changes are in files, except those to Scopes
}

// hold removes from a round, which covers the log up to end, the working-memory scopes whose files need not be
// written yet. It returns the position up to which the files are authoritative after the round. It is called once,
// before any working memory is written.
func (f *filing) hold(ctx context.Context, c wal.Checkpoint, end wal.Mark, m Merge) (wal.Mark, error) {
	fl := f.fl
	behind := &fl.Lagging
	for key := range behind.Scopes {
		f.worked.add(key)
	}
	behind.Scopes = nil
	f.held = true
	if m != MergeWhenDue || f.distrusted || f.repeats ||
		fl.following == nil && int64(end.LSN-c.Spilled.LSN) > fl.engine.Env().System.SpillBytes {
		return end, nil
	}
	first := end.LSN
	for _, key := range f.worked.take() {
		from, ok := fl.host.MayLag(ctx, key, c.Flushed.LSN)
		if !ok {
			f.worked.add(key)
			continue
		}
		if behind.Scopes == nil {
			behind.Scopes = map[string]bool{}
		}
		behind.Scopes[key] = true
		first = min(first, from)
	}
	if first == end.LSN {
		return end, nil
	}
	mark, err := fl.engine.Log().MarkBefore(ctx, first)
	if err != nil || mark.LSN < c.Flushed.LSN {
		return c.Flushed, err
	}
	return mark, nil
}

// worked is the set of the keys of the working-memory scopes that a flush has to write.
type worked struct {
	mu   sync.Mutex
	keys map[string]bool
}

func (w *worked) add(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.keys == nil {
		w.keys = map[string]bool{}
	}
	w.keys[key] = true
}

// take empties the set and returns its keys, sorted.
func (w *worked) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	keys := slices.Sorted(maps.Keys(w.keys))
	w.keys = nil
	return keys
}
