package search

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/note"
	view "github.com/varve-db/varve/internal/view/words"
	"github.com/varve-db/varve/internal/words"
	"github.com/varve-db/varve/internal/words/query"
	"github.com/varve-db/varve/memstore"
)

// A note is found by its sections, and is one hit: that of its best section. Filters hold for it as for a memory that
// has its path as its id, the time of its last change as its timestamp, and session, expiry, tags and metadata of its
// sidecar.

// finds reports whether a query searches documents of the kind k.
func (q *Query) finds(k memstore.Kind) bool { return len(q.Kinds) == 0 || slices.Contains(q.Kinds, k) }

func (q *Query) validateKinds() error {
	for _, k := range q.Kinds {
		if k != memstore.KindMemory && k != memstore.KindNote {
			return &errs.FieldError{Field: "query Kinds", Value: human.Quote(string(k)),
				Err: fmt.Errorf("%w: must be %s or %s", errs.ErrInvalid, memstore.KindMemory, memstore.KindNote)}
		}
	}
	return nil
}

// findsNotes reports whether a query can find notes in this store.
func (s *Search) findsNotes(q *Query) bool {
	return q.finds(memstore.KindNote) && s.engine.HasHad(s.engine.Kinds().Notes)
}

// aNote is a note, with the properties that the note's sidecar file contains.
type aNote struct {
	engine.Version
	sidecar note.Sidecar
}

// note returns the newest version of the note at a path, with its content if doc is true. If there is no such note, or
// if the note does not pass the filters, the error is errs.ErrNotFound.
func (s *Search) note(ctx context.Context, path string, f *engine.Filters, doc bool) (n aNote, err error) {
	k, now := s.engine.Kinds().Notes, s.engine.Env().Clock()
	if n.Version, err = s.engine.Find(ctx, k, path, doc || f.Reads()); err != nil { // its front matter may have tags
		return n, err
	}
	side, err := s.engine.Find(ctx, k, note.SidecarOf(path), true)
	if err == nil {
		n.sidecar, err = note.DecodeSidecar(side.Doc)
	}
	if err != nil && !errors.Is(err, errs.ErrNotFound) {
		return n, err
	}
	line := *f
	line.Session = nil
	x := n.sidecar.Expires
	switch {
	case !x.IsZero() && !now.Before(x) && !f.Expired,
		!line.Line(path, &n.Line, now) || f.After != "" && !sortsAfter(path, f.After),
		f.Session != nil && (n.sidecar.Session != *f.Session || *f.Session == ""),
		f.Reads() && !f.Memory(n.asMemory(path)):
		return n, errs.ErrNotFound
	}
	return n, nil
}

// asMemory returns a memory that has those properties of the note that filters check.
func (n *aNote) asMemory(path string) *memstore.Memory {
	m := &memstore.Memory{ID: path, Timestamp: n.Line.UpdatedAt, Metadata: map[string]any{}}
	for name, v := range n.sidecar.Metadata {
		m.Metadata[name] = v
	}
	var tags []any
	for _, t := range append(slices.Clone(n.sidecar.Tags), note.Tags(n.Doc)...) {
		if !slices.Contains(tags, any(t)) {
			tags = append(tags, t)
		}
	}
	if len(tags) > 0 {
		m.Metadata["tags"] = tags
	}
	if n.sidecar.Session != "" {
		m.Metadata["session_id"] = n.sidecar.Session
	}
	return m
}

// sectionOf returns the section of a note to which a hit refers. It returns false if the note was changed after it was
// indexed.
func (n *aNote) sectionOf(h *found) (note.Section, bool) {
	list := note.Sections(n.Doc)
	if n.LSN != h.lsn || h.section >= len(list) {
		return note.Section{}, false
	}
	return list[h.section], true
}

// errChanged is the error for a section of a note that has a newer version; it matches errs.ErrNotFound.
var errChanged = fmt.Errorf("%w: the note has changed", errs.ErrNotFound)

// noteHit reads the note to which a hit refers. If the hit is no longer valid, because the note was deleted, was
// changed or has expired, the error is errs.ErrNotFound. session is the session of the note, and size is the
// number of bytes that the returned hit keeps in memory.
func (s *Search) noteHit(ctx context.Context, q *Query, f *engine.Filters, h *found, a *asked) (hit Hit, session string,
	size int64, err error) {
	n, err := s.note(ctx, h.ID, f, true)
	if err != nil {
		return Hit{}, "", 0, err
	}
	at, ok := n.sectionOf(h)
	if !ok {
		return Hit{}, "", 0, errChanged
	}
	hit = Hit{ID: h.ID, Score: h.Score, Words: h.words, Vector: h.vector}
	hit.Note = &memstore.NoteSection{Path: h.ID, Version: n.LSN, CreatedAt: n.Line.CreatedAt, UpdatedAt: n.Line.UpdatedAt,
		Headings: at.Headings, From: at.From, To: at.To, Text: string(n.Doc[at.Start:at.End])}
	if q.Explain {
		hit.Explanation = a.explained(h, func() []query.Text { return view.TextsOf(h.ID, n.Doc, &at, note.Tags(n.Doc)) })
	}
	if q.Fragment > 0 {
		hit.Fragment = fragmentOf(hit.Note.Text, a.query, a.analyzer, q.Fragment)
	}
	return hit, n.sidecar.Session, int64(len(hit.Note.Text)), nil
}

// noteTime returns the time at which a note was last changed; false if it is unknown.
func (s *Search) noteTime(ctx context.Context, path string) (time.Time, bool) {
	v, err := s.engine.Find(ctx, s.engine.Kinds().Notes, path, false)
	return v.Line.UpdatedAt, err == nil
}

// sectionTexts returns the texts of a section, or nil if the note of the section has another version than lsn by now
// or cannot be read. cache has the notes that were read for earlier sections; sectionTexts adds each note that it
// reads.
func (s *Search) sectionTexts(ctx context.Context, id string, lsn uint64, cache *cutNotes,
	bad *unreadable) ([]query.Text, error) {
	path, i, _ := note.SplitSectionID(id)
	n, ok := cache.notes[path]
	if !ok || n.lsn != lsn {
		v, err := s.engine.Find(ctx, s.engine.Kinds().Notes, path, true)
		if err != nil {
			return nil, bad.pass(ctx, err)
		}
		n = cutNote{path, v.LSN, v.Doc, note.Sections(v.Doc), note.Tags(v.Doc)}
		cache.add(n)
	}
	if n.lsn != lsn || i >= len(n.sections) {
		return nil, nil
	}
	return view.TextsOf(path, n.doc, &n.sections[i], n.tags), nil
}

// firstOfNotes returns a noteJudge for one search. Its method judge accepts sections of notes that pass the filters.
// The search by words makes the first accepted section of a note a hit and records the note in given, so that judge
// accepts no further section of this note. It asks for the sections with the best scores first, so the hit is the best
// section.
func (s *Search) firstOfNotes(ctx context.Context, f *engine.Filters, bad *unreadable) *noteJudge {
	return &noteJudge{s: s, f: f, bad: bad, passes: map[string]bool{}, given: map[string]bool{}}
}

// noteJudge decides which sections of notes become hits of a search.
type noteJudge struct {
	s      *Search
	f      *engine.Filters
	bad    *unreadable
	passes map[string]bool // for each note checked so far, by path: whether it passes the filters
	given  map[string]bool // paths of the notes that already have a hit
}

// judge reports whether the note at a path passes the filters and is not in given, the notes that have a hit already.
// It returns false for a note that cannot be read, and records the error in bad.
func (j *noteJudge) judge(ctx context.Context, path string) (bool, error) {
	ok, seen := j.passes[path]
	if !seen {
		_, err := j.s.note(ctx, path, j.f, false)
		if ok = err == nil; !ok {
			if err := j.bad.pass(ctx, err); err != nil {
				return false, err
			}
		}
		j.passes[path] = ok
	}
	return ok && !j.given[path], nil
}

// foundBy returns the memory, or the section of a note, to which a hit of a search by words refers.
func foundBy(h *words.Hit) found {
	path, ok := view.PathOf(h.At, h.ID)
	if !ok {
		return found{ID: h.ID, Score: h.Score}
	}
	_, i, _ := note.SplitSectionID(h.ID)
	return found{ID: path, Score: h.Score, note: true, section: i, lsn: h.LSN}
}
