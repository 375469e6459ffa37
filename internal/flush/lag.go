package flush

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/varve-db/varve/wal"
)

// A scope's file is written as a whole. So that a large one of which a little changes
// all the time does not keep the disk busy with the same bytes, the rounds in the
// background let it lag: it is written when half as much has changed, or after so many
// seconds as it has MiB. What is flushed stands still then before the first entry that
// the file lacks, and with it the log that is kept: below flushed the files are the truth, of
// scopes too. What else was put into files behind it is remembered by the process that put it there
// (filed); another flusher, or one after a failure, does it once more.
//
// Flush, Close, purge, a log that has passed its budget and a file that somebody edits or
// deletes meanwhile (Files.Look, Files.Gone) let nothing lag.

// lag is guarded by flush.lock.
type lag struct {
	Scopes map[string]bool // whose files lag
	filed  wal.LSN         // up to here all else is in files
}

// hold takes out of what a round puts into files those scopes that may lag, and says
// up to where the files are the truth after it. It is called once, before anything
// of working memory is put there.
func (f *filing) hold(ctx context.Context, c wal.Checkpoint, to wal.Mark, m Merge) (wal.Mark, error) {
	fl := f.fl
	behind := &fl.Lagging
	for key := range behind.Scopes {
		f.worked.add(key)
	}
	behind.Scopes = nil
	f.held = true
	if m != MergeWhenDue || f.distrusted || f.repeats ||
		fl.following == nil && int64(to.LSN-c.Spilled.LSN) > fl.engine.Env().System.SpillBytes {
		return to, nil
	}
	first := to.LSN
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
	if first == to.LSN {
		return to, nil
	}
	mark, err := fl.engine.Log().MarkBefore(ctx, first)
	if err != nil || mark.LSN < c.Flushed.LSN {
		return c.Flushed, err
	}
	return mark, nil
}

// worked are the keys of the scopes that a flush has to write.
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

// take empties the list and gives it, sorted.
func (w *worked) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	keys := slices.Sorted(maps.Keys(w.keys))
	w.keys = nil
	return keys
}
