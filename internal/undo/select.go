package undo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/wal/past"
	"github.com/varve-db/varve/writer"
)

// selection specifies which commits are to be undone.
type selection struct {
	Options
	from      wal.LSN // position at which the oldest of the commits begins, or an earlier one
	has       func(b *batch) bool
	continues bool  // the selection continues an undo that was interrupted
	released  error // set if commits of the run are no longer kept; nil: none as far as is known
	// left has the documents, by key, for which a conflict was found when they were about to be restored.
	left map[string]Conflict
}

// described is the JSON object that identifies an undo of several commits; see the package comment.
type described struct {
	Position wal.LSN   `json:"position,omitempty"`
	Run      string    `json:"run,omitempty"`
	Since    time.Time `json:"since,omitzero"`
	Before   wal.LSN   `json:"before"`
	Partial  bool      `json:"partial,omitempty"`
}

// String returns the JSON object that identifies the undo of the selected commits.
func (s *selection) String() string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // six bytes for each < of a name would pass writer.MostUndo
	if err := e.Encode(described{s.Position, s.Run, s.Since.UTC(), s.Before, s.Partial}); err != nil {
		return "" // every value can be encoded as JSON
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// optionsOf parses the JSON object that identifies an undo.
func optionsOf(undo string) (Options, error) {
	var d described
	if err := json.Unmarshal([]byte(undo), &d); err != nil || d.Before == 0 || (d.Position == 0) == (d.Run == "") {
		return Options{}, fmt.Errorf("%w: %s does not identify an undo", errs.ErrCorrupt, human.Quote(undo))
	}
	return Options(d), nil
}

// selection returns the selection that the options specify.
func (u *Undoer) selection(ctx context.Context, o Options) (*selection, error) {
	if o.Position != 0 && (o.Run != "" || !o.Since.IsZero()) {
		return nil, fmt.Errorf("%w: name either a position or a run, not both", errs.ErrInvalid)
	}
	if o.Run == "" && !o.Since.IsZero() {
		return nil, fmt.Errorf("%w: a time also requires the run whose commits are to be undone", errs.ErrInvalid)
	}
	if err := u.engine.CatchUp(ctx); err != nil {
		return nil, err
	}
	end := u.engine.Log().Durable()
	if o.Before == 0 || o.Before > end {
		o.Before = end
	}
	o.Run = writer.FitName(o.Run) // the form that writers store, by which the undo is identified
	o.Since = o.Since.UTC().Truncate(time.Microsecond)
	if o.Position != 0 || o.Run != "" {
		undo, err := u.interrupted(ctx, o, end)
		if err != nil {
			return nil, err
		}
		if s, err := u.continued(ctx, undo); s != nil || err != nil {
			return s, err
		}
		return u.resolve(ctx, o)
	}
	last, err := u.last(ctx, o.Before)
	if err != nil {
		return nil, err
	}
	if last.undoing {
		if s, err := u.continued(ctx, last.undo); s != nil || err != nil {
			return s, err
		}
	}
	o.Position = last.at
	return u.resolve(ctx, o)
}

// continued returns the selection that continues an interrupted undo. undo is the JSON object that identifies it. The
// selection is nil if undo is "" or if nothing is left to undo.
func (u *Undoer) continued(ctx context.Context, undo string) (*selection, error) {
	if undo == "" {
		return nil, nil
	}
	o, err := optionsOf(undo)
	if err != nil {
		return nil, err
	}
	s, err := u.resolve(ctx, o)
	if err != nil {
		return nil, err
	}
	s.continues = true
	if p, _, err := u.plan(ctx, s); err != nil || len(p.Changes) == 0 {
		return nil, err
	}
	return s, nil
}

// resolve returns the selection that the options name: the commit at a position, or the commits of a run.
func (u *Undoer) resolve(ctx context.Context, o Options) (*selection, error) {
	s := &selection{Options: o, left: map[string]Conflict{}}
	log := u.engine.Log().Past()
	first, err := log.First(o.Before)
	if err != nil {
		return nil, err
	}
	if o.Position != 0 {
		return s, u.resolvePosition(ctx, s, first)
	}
	by, since, err := u.engine.WrittenBy(ctx, o.Run)
	if err != nil {
		return nil, err
	}
	if since > o.Before {
		return nil, fmt.Errorf("writer %s: %w", human.Quote(o.Run), errs.ErrNotFound)
	}
	if !o.Since.IsZero() {
		at, err := log.Since(ctx, o.Since, o.Before)
		if err != nil && !errors.Is(err, errs.ErrTruncated) {
			return nil, err
		}
		since = max(since, at)
	}
	if since > 0 && since < first {
		s.released = fmt.Errorf("the commits of writer %s before position %d cannot be undone: %w",
			human.Quote(o.Run), first,
			&errs.TruncatedError{Oldest: first})
	}
	s.from = begin(log, max(first, since), first)
	s.has = func(b *batch) bool {
		return !b.expires && by(b.writer, b.at) && (o.Since.IsZero() || !b.time.Before(o.Since))
	}
	return s, nil
}

// begin returns the first position of the segment that contains position pos, or first if first is greater.
func begin(log *past.Log, pos, first wal.LSN) wal.LSN {
	return max(first, log.Geometry.Start(log.SegmentOf(pos)))
}

// resolvePosition selects the commit at a position. If this commit belongs to an undo of several commits, it selects
// all commits of that undo.
func (u *Undoer) resolvePosition(ctx context.Context, s *selection, first wal.LSN) error {
	log := u.engine.Log().Past()
	none := fmt.Errorf("position %d: %w: there is no commit at this position", s.Position, errs.ErrNotFound)
	switch {
	case s.Position >= s.Before || s.Position < log.Geometry.Size:
		return none
	case s.Position < first:
		return fmt.Errorf("position %d: %w", s.Position, &errs.TruncatedError{Oldest: first})
	}
	s.from = begin(log, s.Position, first)
	var at, next wal.LSN
	var by writer.Writer
	var purge bool
	var unread error
	err := u.batches(ctx, s.from, min(s.Before, log.SegmentEnd(log.SegmentOf(s.Position))),
		func(b *batch, err error) bool {
			if err != nil {
				unread = err
				return true
			}
			if b.at <= s.Position && s.Position < b.next {
				at, next, by, purge = b.at, b.next, u.engine.Writer(b.writer, b.at), b.purge()
			}
			return b.next <= s.Position
		})
	if err != nil {
		return err
	}
	if purge {
		return fmt.Errorf("position %d: %w", s.Position, errPurge)
	}
	if next == 0 {
		if erased, err := log.ErasedAt(ctx, s.Before, s.Position); err == nil && erased[s.Position] {
			return fmt.Errorf("position %d: %w", s.Position, errPurge)
		}
		return errors.Join(none, unread)
	}
	s.has = func(b *batch) bool { return at <= b.at && b.at < next }
	if by.Undo != "" { // a part of an undo is not undone alone
		s.from, err = u.parts(ctx, by.Undo, first)
		s.has = func(b *batch) bool { w := u.engine.Writer(b.writer, b.at); return w.Undo == by.Undo }
	}
	return err
}

// parts returns a position that is not after the first commit of an undo. undo is the JSON object that identifies the
// undo. first is the first position that the log and the archive have.
func (u *Undoer) parts(ctx context.Context, undo string, first wal.LSN) (wal.LSN, error) {
	t, err := u.engine.Writers(ctx)
	if err != nil {
		return 0, err
	}
	set := t.Where(func(w *writer.Writer) bool { return w.Undo == undo })
	log := u.engine.Log().Past()
	return begin(log, max(first, min(set.First(), u.engine.Log().Durable()-1)), first), nil
}

// interrupted returns the JSON object of an interrupted undo with the same selection, "" if no such undo was
// interrupted.
func (u *Undoer) interrupted(ctx context.Context, o Options, end wal.LSN) (string, error) {
	t, err := u.engine.Writers(ctx)
	if err != nil {
		return "", err
	}
	for _, w := range slices.Backward(t.All()) {
		if w.Undo == "" {
			continue
		}
		on, err := optionsOf(w.Undo)
		if err != nil || on.Position != o.Position || on.Run != o.Run || !on.Since.Equal(o.Since) ||
			on.Partial != o.Partial || w.Since >= o.Before && on.Before != o.Before {
			continue
		}
		last, err := u.newestBy(ctx, w.Since, end, func(by *writer.Writer) bool { return by.Undo == w.Undo })
		if err != nil || !last.undoing {
			return "", err
		}
		return w.Undo, nil
	}
	return "", nil
}

// made is a commit of a given writer, as found in the log.
type made struct {
	at      wal.LSN
	undo    string // JSON object of the undo of several commits to which the commit belongs; "" if it belongs to none
	undoing bool   // the commit belongs to that undo and is not its last
	purge   bool   // the commit names purged or redacted documents
}

// newestBy returns the newest commit in [from, to) by a writer for which match returns true. It considers only
// commits that changed documents or that name a purge. It ignores commits that the store made by itself. If there
// is no such commit, m.at is 0.
func (u *Undoer) newestBy(ctx context.Context, from, to wal.LSN,
	match func(w *writer.Writer) bool) (m made, err error) {
	log := u.engine.Log().Past()
	first, err := log.First(to)
	if err != nil {
		return m, err
	}
	for from = max(from, first); to > from && m.at == 0 && err == nil; {
		start := begin(log, to-1, first)
		err = u.batches(ctx, start, to, func(b *batch, err error) bool {
			if err != nil || b.at < from || b.upkeep || b.expires {
				return true
			}
			documents := slices.ContainsFunc(b.entries, func(e entry) bool { return u.engine.Kinds().Of(e.key) != nil })
			if w := u.engine.Writer(b.writer, b.at); (documents || b.purge()) && w.Number != 0 && match(&w) {
				undoing := slices.ContainsFunc(b.entries, func(e entry) bool { return e.cause == wal.CauseUndoing })
				m = made{b.at, w.Undo, undoing, b.purge()}
			}
			return true
		})
		to = start
	}
	return m, err
}

// last returns the newest commit of the caller before position end. The caller is every process of a program with
// the same name on the same machine, for the same agent, session, client and token. So the commit may be by an
// earlier process: a process may run only a single command.
func (u *Undoer) last(ctx context.Context, end wal.LSN) (made, error) {
	own := u.engine.Describe(ctx)
	if own == nil {
		return made{}, fmt.Errorf("%w: the writer of this handle is unknown, so its last commit cannot be found; "+
			"name a position or a run", errs.ErrInvalid)
	}
	m, err := u.newestBy(ctx, 0, end, func(w *writer.Writer) bool { return sameWriter(w, own) })
	if err == nil && m.at == 0 {
		err = fmt.Errorf("%w: the log has no commit of your own, as %s", errs.ErrNotFound, caller(own))
	}
	if err == nil && m.purge {
		err = fmt.Errorf("your own last commit, as %s, is at position %d: %w: name the position of another commit",
			caller(own), m.at, errPurge)
	}
	return m, err
}

// program returns the name of the program of a writer, without the command that it ran.
func program(w *writer.Writer) string {
	name, _, _ := strings.Cut(w.Program, " ")
	return name
}

// caller returns a description, for an error message, of the writers that sameWriter treats as equal to w.
func caller(w *writer.Writer) string {
	name := w.Name()
	if name == w.Program {
		name = program(w)
	}
	if w.Session != "" {
		name += ", session " + w.Session
	}
	return name
}

// sameWriter reports whether two writers are equal. It ignores the process and the command that the program ran.
func sameWriter(a, b *writer.Writer) bool {
	return program(a) == program(b) && a.Host == b.Host && a.Agent == b.Agent && a.Session == b.Session &&
		a.Client == b.Client && a.Token == b.Token
}
