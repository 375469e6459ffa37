package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/working"
	"github.com/varve-db/varve/writer"
)

// Commit describes the changes of one commit.
type Commit struct {
	LSN  uint64 // position of the first change
	Next uint64 // position after the commit
	// Reading of the clock at the commit; it may be earlier than the reading of an earlier commit.
	Time    time.Time
	Writer  writer.Writer // the writer; Number 0: unknown
	Changes []Changed     // changes in log order
}

// Changed is the change of one document by a commit.
type Changed struct {
	LSN  uint64 // version that the commit made
	Kind string // "memory", "assembly" or "working memory"
	ID   string // id of the document; for working memory, the key of the scope
	What string // "created", "changed" or "deleted"
	// Reason why the store made the change: "expired", "evicted", "edited", "upkeep" or "undo"; "": a caller
	// requested it.
	Cause    string
	Previous uint64 // the previous version, which may be a deletion; 0: this is the first version
}

// LogFilter selects commits, and the changes in these commits.
type LogFilter struct {
	Since, Until time.Time // bounds of the time of a commit; the zero time sets no bound
	By           func(number uint32, version uint64) bool
	First        uint64 // position before which no version passes By
	Session      *string
	ID           *string
	Deleted      bool   // deletions only
	Before       uint64 // only commits that begin before this position; 0: all
}

// CauseOf returns the word that the history uses for a cause, a constant of package wal. It returns "" for any other
// number.
func CauseOf(cause uint8) string {
	switch cause {
	case wal.CauseExpired:
		return "expired"
	case wal.CauseEvicted:
		return "evicted"
	case wal.CauseEdited:
		return "edited"
	case wal.CauseUpkeep:
		return "upkeep"
	case wal.CauseUndo, wal.CauseUndoing:
		return "undo"
	}
	return ""
}

// Log yields the commits that pass the filter, the newest first. For an unreadable part of the log it yields an error,
// and continues with older commits. Log keeps the list of the changes of one segment in memory, without the documents.
func (h *History) Log(ctx context.Context, f LogFilter, yield func(Commit, error) bool) {
	if err := h.engine.BeginUse(); err != nil {
		yield(Commit{}, err)
		return
	}
	defer h.engine.EndUse()
	to, err := h.engine.DurableNow(ctx)
	if f.Before != 0 {
		to = min(to, f.Before)
	}
	past := h.engine.Log().Past()
	var first wal.LSN
	if err == nil {
		first, err = past.First(to)
	}
	if err != nil {
		yield(Commit{}, err)
		return
	}
	if f.First > first {
		first = max(first, past.Geometry.Start(past.SegmentOf(min(f.First, to))))
	}
	for to > first && ctx.Err() == nil {
		from := max(first, past.Geometry.Start(past.SegmentOf(to-1)))
		list, problems := h.commits(ctx, &f, from, to)
		for _, err := range problems {
			if !yield(Commit{}, err) {
				return
			}
		}
		for _, c := range slices.Backward(list) {
			if !yield(c, nil) {
				return
			}
		}
		to = from
	}
	if ctx.Err() != nil {
		yield(Commit{}, ctx.Err())
	}
}

// add adds the changes of companions, such as the properties of a note, to a commit. The change of a companion counts
// as a change of the document to which the companion belongs. If the commit also changes that document itself, add
// omits the change of the companion.
func (c *Commit) add(companions []Changed) {
	if len(companions) == 0 {
		return
	}
	type document struct{ kind, id string }
	has := make(map[document]bool, len(c.Changes))
	for _, ch := range c.Changes {
		has[document{ch.Kind, ch.ID}] = true
	}
	for _, ch := range companions {
		if !has[document{ch.Kind, ch.ID}] {
			c.Changes = append(c.Changes, ch)
		}
	}
	slices.SortStableFunc(c.Changes, func(a, b Changed) int { return cmp.Compare(a.LSN, b.LSN) })
}

// commits returns the commits at the log positions [from, to) that pass the filter, in log order, and an error for each
// unreadable part.
func (h *History) commits(ctx context.Context, f *LogFilter, from, to wal.LSN) (list []Commit, problems []error) {
	var c Commit
	var companions []Changed
	within := false // an earlier entry of the commit was seen
	for e, err := range h.engine.Log().Past().Entries(ctx, wal.Mark{LSN: from}, to) {
		if err != nil {
			if ctx.Err() != nil {
				return list, nil
			}
			problems, within = append(problems, err), false
			continue
		}
		if !within {
			c, within, companions = Commit{LSN: e.LSN, Time: e.Reading}, true, companions[:0]
		}
		if c.Writer.Number == 0 && e.Writer != 0 {
			c.Writer.Number = e.Writer
		}
		c.Next = e.LSN + e.Size
		if ch, companion, ok, err := h.changed(ctx, f, &e); err != nil {
			problems = append(problems, err)
		} else if companion && ok {
			companions = append(companions, ch)
		} else if ok {
			c.Changes = append(c.Changes, ch)
		}
		if e.More {
			continue
		}
		if c.add(companions); len(c.Changes) > 0 {
			c.LSN = c.Changes[0].LSN
		}
		if within = false; len(c.Changes) > 0 && f.commit(&c) {
			c.Writer = h.engine.Writer(c.Writer.Number, c.LSN)
			list = append(list, c)
		}
	}
	return list, problems
}

// commit reports whether a commit passes the conditions of the filter that concern the whole commit.
func (f *LogFilter) commit(c *Commit) bool {
	return (f.Since.IsZero() || !c.Time.Before(f.Since)) && (f.Until.IsZero() || c.Time.Before(f.Until)) &&
		(f.By == nil || f.By(c.Writer.Number, c.LSN))
}

// changed returns the change that a log entry made. ok is false if the change does not pass the filter, or if the entry
// changes no document. companion reports whether the entry is that of a companion, such as the properties of a note.
// Such an entry counts as a change of the document to which the companion belongs, even if it deletes the companion.
func (h *History) changed(ctx context.Context, f *LogFilter, e *wal.Entry) (ch Changed, companion, ok bool, err error) {
	k := h.engine.Kinds().Of(e.Key)
	ch = Changed{LSN: e.LSN, What: "changed", Cause: CauseOf(e.Cause)}
	switch {
	case k != nil:
		ch.Kind = k.Noun
		ch.ID, companion = k.Document(e.Key[1:])
	case len(e.Key) > 1 && e.Key[0] == record.Working:
		ch.Kind, ch.ID = kindWorking, e.Key[1:]
	default:
		return ch, false, false, nil
	}
	deleted := e.Delete && !companion
	if f.Deleted && !deleted || f.ID != nil && *f.ID != ch.ID {
		return ch, companion, false, nil
	}
	view, err := state.Read(e)
	if err != nil {
		return ch, companion, false, fmt.Errorf("entry %d: %w", e.LSN, err)
	}
	ch.Previous = view.Previous
	switch {
	case companion:
	case e.Delete:
		ch.What = "deleted"
	case view.Created || k == nil && view.Previous == 0:
		ch.What = "created"
	}
	if f.Session == nil {
		return ch, companion, true, nil
	}
	if k == nil {
		scope, err := working.ParseScope(ch.ID)
		return ch, false, err == nil && scope.Session == *f.Session, nil
	}
	ok, err = h.inSession(ctx, k, e, &view, *f.Session)
	return ch, companion, ok, err
}

const kindWorking = "working memory"

// inSession reports whether a log entry writes or deletes a memory of a session. For a deletion, the session is that of
// the version before it. If that version is not kept, its session is unknown, and inSession returns false.
func (h *History) inSession(ctx context.Context, k *engine.Kind, e *wal.Entry, view *record.View,
	session string) (bool, error) {
	if k != h.engine.Kinds().Memories {
		return false, nil
	}
	line := view.Line
	if e.Delete {
		if view.Previous == 0 {
			return false, nil
		}
		before, err := h.engine.Log().Past().At(ctx, view.Previous, e.LSN)
		if errors.Is(err, errs.ErrTruncated) || errors.Is(err, errs.ErrNotFound) || err == nil && before.Key != e.Key {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("entry %d: %w", e.LSN, err)
		}
		v, err := state.Read(&before)
		if err != nil || before.Delete {
			return false, nil
		}
		line = v.Line
	}
	l, err := index.ParseLine(line)
	if err != nil {
		return false, fmt.Errorf("entry %d: %w", e.LSN, err)
	}
	return l.SessionID == session, nil
}
