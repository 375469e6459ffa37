package history

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/writer"
)

// Change is one committed change of one document, by any process.
type Change struct {
	LSN  uint64 // version that the change made; ascending within a batch
	Next uint64 // position to continue from: Watch(ctx, Next)
	// Reading of the clock at the commit; it may be earlier than the reading of an earlier change.
	Time     time.Time
	Kind     string // the noun of the kind: "memory" or "assembly"
	ID       string
	Deleted  bool
	Memory   memstore.Memory   // the memory as written; zero if it was deleted or the change is of another kind
	Assembly assembly.Assembly // the assembly as written; zero if it was deleted or the change is of another kind
	Document []byte            // the bytes of a document of another kind; nil if deleted, or if only its companion changed
	More     bool              // the next change is of the same batch
	Writer   writer.Writer     // the writer; Number 0: unknown
	Cause    string            // reason why the store wrote the change, see Changed; "": a caller requested it
}

// Filter selects changes.
type Filter struct {
	Kind    string
	Session string
	Only    bool // yield only changes of Session
}

// FromNow is the position to pass to Watch to get only future changes.
const FromNow = math.MaxUint64

// Watch yields every change from a position on, and then waits for further changes until ctx ends. It omits versions
// that were redacted since. At the end it yields the error.
func (h *History) Watch(ctx context.Context, from uint64, f Filter, yield func(Change, error) bool) {
	w := &watcher{h: h, filters: f}
	err := w.begin(ctx, from)
	for err == nil {
		err = w.read(ctx)
		for _, e := range w.list {
			if e.Delete || !h.hides(&e) {
				if !yield(h.changeOf(e)) {
					return
				}
			}
		}
	}
	yield(Change{}, h.explained(err))
}

// explained returns errs.ErrReplaced if err is due to the removal of the store's files, and err otherwise.
func (h *History) explained(err error) error {
	if h.engine.BeginUse() != nil {
		return err
	}
	defer h.engine.EndUse()
	return h.engine.Log().Folder().Explain(err)
}

// Until yields the committed changes from a position on. It ends with the last commit that was made before the call.
// It omits versions that were redacted since.
func (h *History) Until(ctx context.Context, from uint64, yield func(Change, error) bool) {
	to, err := h.engine.DurableNow(ctx)
	for w := (&watcher{h: h, at: from}); err == nil && w.at < to; {
		w.list = w.list[:0]
		err = w.readMore(ctx)
		for _, e := range w.list {
			if e.Delete || !h.hides(&e) {
				if !yield(h.changeOf(e)) {
					return
				}
			}
		}
	}
	if err != nil {
		yield(Change{}, err)
	}
}

// watched is a log entry that has passed the filters of Watch.
type watched struct {
	wal.Entry
	kind *engine.Kind
	id   string // id of the document; for a companion, that of the document that it belongs to
	// the entry changes a companion, and no entry of the batch changes the document to which the companion belongs
	alone bool
	next  wal.LSN
	more  bool // another entry of the batch passed the filters too
}

// watcher is the state of one loop over changes, of Watch or Until. While the body of the loop runs, the watcher does
// not count as an operation of the store, so the store may be closed meanwhile.
type watcher struct {
	h       *History
	filters Filter
	at      wal.LSN // position below which everything is in list or was yielded
	list    []watched
}

// begin sets w.at to the log position from which changes are read. from is the position that was passed to Watch;
// FromNow means the end of the log.
func (w *watcher) begin(ctx context.Context, from wal.LSN) error {
	h := w.h
	if err := h.engine.BeginUse(); err != nil {
		return err
	}
	defer h.engine.EndUse()
	if err := h.engine.CatchUp(ctx); err != nil {
		return err
	}
	to := h.engine.Log().Durable()
	if from == FromNow {
		from = to
	}
	if from > to {
		return fmt.Errorf("%w: position %d is beyond the log of %s, which ends at %d: is the position from "+
			"another store?", errs.ErrInvalid, from, h.engine.Env().Dir, to)
	}
	var err error
	w.at, err = h.engine.Log().Past().From(ctx, from, to)
	return err
}

// watchBytes is the number of bytes of log that are read at once. If a single commit is larger, it is read as a whole.
const watchBytes = 1 << 20

// read fills the watcher's list with the changes of the next commits. If no further commit exists yet, it waits for
// one. If it returns an error, the list has the changes before the error.
func (w *watcher) read(ctx context.Context) error {
	for w.list = w.list[:0]; len(w.list) == 0; {
		at := w.at
		if err := w.readMore(ctx); err != nil {
			return err
		}
		if w.at > at {
			continue
		}
		if err := w.h.awaitBeyond(ctx, at); err != nil {
			return err
		}
	}
	return nil
}

// readMore reads the next part of the durable log, if the log has new entries.
func (w *watcher) readMore(ctx context.Context) error {
	h := w.h
	if err := h.engine.BeginUse(); err != nil {
		return err
	}
	defer h.engine.EndUse()
	to := h.engine.Log().Durable()
	if w.at >= to {
		return ctx.Err()
	}
	if w.at >= h.engine.Log().Spilled() {
		err := w.collect(ctx, to, h.engine.Log().Scan(ctx, w.at))
		if !errors.Is(err, errs.ErrTruncated) {
			return err
		}
		// The log was released during the read: the archive has the entries.
	}
	return w.collect(ctx, to, h.engine.Log().Past().Entries(ctx, wal.Mark{LSN: w.at}, h.engine.Log().Durable()))
}

// collect appends the entries that pass the filters to the watcher's list. It appends the entries of whole commits
// only, and ends early when it has appended watchBytes bytes of log. If it reaches the end of entries, the watcher
// has read the log up to the position to.
func (w *watcher) collect(ctx context.Context, to wal.LSN, entries iter.Seq2[wal.Entry, error]) error {
	whole, bytes := len(w.list), 0 // length of the list up to the end of a batch
	for e, err := range entries {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			w.list = w.list[:whole]
			return err
		}
		if k := w.h.engine.Kinds().Of(e.Key); k != nil && w.filters.pass(ctx, w.h, k, &e) {
			bytes += int(e.Size)
			id, companion := k.Document(e.Key[1:])
			w.list = append(w.list, watched{Entry: e, kind: k, id: id, alone: companion, next: e.LSN + e.Size, more: true})
		}
		if e.More {
			continue
		}
		w.list = slices.Delete(w.list, whole+joined(w.list[whole:]), len(w.list))
		w.at = e.LSN + e.Size
		if whole < len(w.list) {
			whole = len(w.list)
			w.list[whole-1].next, w.list[whole-1].more = w.at, false
		}
		if bytes >= watchBytes {
			return nil
		}
	}
	w.at = max(w.at, to) // what is at the end is the log's own
	return nil
}

// joined moves the changes of a commit that must be yielded to the beginning of batch, and returns their number. It
// drops the change of a companion if the commit also changes the document to which the companion belongs.
func joined(batch []watched) int {
	if !slices.ContainsFunc(batch, func(e watched) bool { return e.alone }) {
		return len(batch)
	}
	type document struct {
		kind *engine.Kind
		id   string
	}
	has := map[document]bool{}
	for _, e := range batch {
		if !e.alone {
			has[document{e.kind, e.id}] = true
		}
	}
	return len(slices.DeleteFunc(batch, func(e watched) bool { return e.alone && has[document{e.kind, e.id}] }))
}

// The pauses between two checks for commits of other processes, on systems that cannot wake a process.
const (
	watchFirst = time.Millisecond
	watchMost  = 20 * time.Millisecond
)

// awaitBeyond blocks until the log is durable beyond a position. The store may be closed while awaitBeyond waits.
func (h *History) awaitBeyond(ctx context.Context, from uint64) error {
	looked := h.engine.Env().Clock()
	for pause := watchFirst; ; pause = min(2*pause, watchMost) {
		if err := h.engine.BeginUse(); err != nil {
			return err
		}
		moved := h.engine.Log().Moved()
		err := h.engine.MovedSince()
		if err == nil {
			err = h.engine.Log().CatchUp(ctx)
		}
		durable := h.engine.Log().Durable()
		if now := h.engine.Env().Clock(); err == nil && durable <= from &&
			(now.Sub(looked) >= engine.MovedLook || now.Before(looked)) {
			looked, err = now, h.engine.Log().Folder().InPlace()
		}
		h.engine.EndUse()
		if err != nil || durable > from {
			return err
		}
		if moved == nil {
			err = h.engine.Env().Sleep(ctx, pause)
		} else {
			select {
			case <-moved:
			case <-ctx.Done():
				err = ctx.Err()
			}
		}
		if err != nil {
			return err
		}
	}
}

// hides reports whether a change must not be yielded, because its version was redacted since, or because the records
// of redactions cannot be read.
func (h *History) hides(e *watched) bool {
	_, is, err := h.redaction(e.kind, e.Key[1:], e.LSN)
	return is || err != nil
}

// changeOf decodes an entry of the log into a Change.
func (h *History) changeOf(e watched) (Change, error) {
	c := Change{Kind: e.kind.Noun, LSN: e.LSN, Next: e.next, Time: e.Reading, ID: e.id, Deleted: e.Delete && !e.alone,
		More: e.more, Writer: h.engine.Writer(e.Writer, e.LSN), Cause: CauseOf(e.Cause)}
	if e.Delete || e.alone {
		return c, nil
	}
	v, err := h.versionOf(e.kind, e.Entry)
	if err != nil {
		return c, err
	}
	doc := engine.Version{LSN: e.LSN, Doc: v.Document}
	switch e.kind {
	case h.engine.Kinds().Assemblies:
		c.Assembly, err = h.engine.DecodeAssembly(c.ID, doc)
	case h.engine.Kinds().Memories:
		c.Memory, err = h.engine.Decode(c.ID, doc)
	default:
		c.Document = v.Document
	}
	return c, err
}
