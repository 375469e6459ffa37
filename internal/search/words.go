package search

import (
	"cmp"
	"context"
	"slices"

	"github.com/varve-db/varve/internal/engine"
	view "github.com/varve-db/varve/internal/view/words"
	"github.com/varve-db/varve/internal/words"
	"github.com/varve-db/varve/internal/words/query"
	"github.com/varve-db/varve/memstore"
)

// byWords returns the n memories and notes that match the text of req best and whose scores are at least minScore.
func (s *Search) byWords(ctx context.Context, req *Query, f *engine.Filters, n int, minScore float64, bad *unreadable,
	a *asked) (list []found, err error) {
	if !s.findsNotes(req) {
		if !req.finds(memstore.KindMemory) {
			return nil, nil
		}
		err = s.words.With(ctx, func(snap *view.Snapshot) error {
			list, err = s.within(ctx, req, f, n, minScore, bad, a, snap, snap.Set)
			return err
		})
		return list, err
	}
	if !req.finds(memstore.KindMemory) {
		err = s.sections.With(ctx, func(snap *view.Snapshot) error {
			list, err = s.within(ctx, req, f, n, minScore, bad, a, snap, snap.Set)
			return err
		})
		return list, err
	}
	err = view.WithBoth(ctx, s.words, s.sections, func(snap, notes *view.Snapshot) error {
		if notes.Analyzer.Print() == snap.Analyzer.Print() {
			all, err := words.Union(snap.Set, notes.Set)
			if err == nil {
				list, err = s.within(ctx, req, f, n, minScore, bad, a, snap, all)
			}
			return err
		}
		// The settings have just been changed, and so far only one of the two word indexes, that of memories or that of
		// notes, was rebuilt.
		other := &asked{}
		if list, err = s.within(ctx, req, f, n, minScore, bad, a, snap, snap.Set); err != nil {
			return err
		}
		more, err := s.within(ctx, req, f, n, minScore, bad, other, notes, notes.Set)
		for i := range more {
			more[i].asked = other
		}
		list = append(list, more...)
		slices.SortFunc(list, compareFound)
		list = list[:min(n, len(list))]
		return err
	})
	return list, err
}

func compareFound(a, b found) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID), cmp.Compare(a.section, b.section))
}

// within does what byWords does for one set of rows of the word index: rows of memories, rows of note sections, or
// both kinds of rows if memories and notes have the same analyzer.
func (s *Search) within(ctx context.Context, req *Query, f *engine.Filters, n int, minScore float64, bad *unreadable,
	a *asked, snap *view.Snapshot, set *words.Set) (list []found, err error) {
	*bad = unreadable{}
	q, err := req.parsedIn(snap, set)
	if err != nil {
		return nil, err
	}
	*a = asked{query: q, analyzer: snap.Analyzer, from: snap.From}
	filter := words.Filter{Session: f.Session, Prefix: f.Prefix, Rarest: req.MaxRareTerms, Each: snap.Each,
		Judged: view.IsOfSections}
	if f.Happened != (engine.Span{}) {
		from, before := engine.Micros(f.Happened) // near the bounds the document decides
		filter.From, filter.Before = &from, &before
	}
	// The rows of sections do not have what filters judge of a note: that is in its sidecar, which noteJudge reads.
	if !snap.OfSections() {
		if filter.Only, _, err = snap.Narrow(f, s.engine.Tune().Few); err != nil {
			return nil, err
		}
	}
	if q.Size() > query.MostWords && req.MaxRareTerms == 0 { // this analyzer gives more words than the one in validate
		return nil, tooManyWords(q.Size())
	}
	hits, err := set.Search(ctx, q, filter, n, minScore, s.accepts(ctx, a, set, f, bad, s.findsNotes(req)))
	if err != nil {
		return nil, err
	}
	shares := make([][]words.Share, len(hits))
	if req.Explain {
		if shares, err = set.Explain(ctx, q, filter, hits); err != nil {
			return nil, err
		}
	}
	for i, h := range hits {
		list = append(list, foundBy(&h))
		list[i].keep(&h, shares[i])
	}
	return list, nil
}

// accepts returns a function that reports whether a hit meets the conditions that the word index cannot decide:
// filters, expiry, phrases, and at most one section of each note. accepts returns nil if there are no such conditions.
func (s *Search) accepts(ctx context.Context, a *asked, set *words.Set, f *engine.Filters, bad *unreadable,
	notes bool) func(words.Hit) (bool, error) {
	q := a.query
	left := *f
	left.Session, left.Prefix = nil, ""
	var passes func(id string) (bool, error)
	if !left.All() || s.engine.AnyExpiry(ctx) {
		passes = s.passes(ctx, &left, bad)
	}
	if passes == nil && !q.Phrases() && !notes {
		return nil
	}
	places := s.firstOfNotes(ctx, f, bad)
	return func(h words.Hit) (bool, error) {
		path, isNote := view.PathOf(h.At, h.ID)
		if isNote {
			if ok, err := places.judge(ctx, path); err != nil || !ok {
				return false, err
			}
		} else if passes != nil {
			if ok, err := passes(h.ID); err != nil || !ok {
				return false, err
			}
		}
		ok, err := s.holds(ctx, &h, a, set, bad)
		if ok && isNote {
			places.given[path] = true
		}
		return ok, err
	}
}

// holds reports whether a hit meets the phrases of a query: the hit's document must have the required phrases and none
// of the excluded phrases. If a hit was found only because of its neighbours, at least one neighbour must have a word
// of the query and none of the excluded phrases.
func (s *Search) holds(ctx context.Context, h *words.Hit, a *asked, set *words.Set, bad *unreadable) (bool, error) {
	q := a.query
	if !q.Phrases() {
		return true, nil
	}
	textsOf := func(id string) ([]query.Text, error) {
		if view.IsOfSections(h.At.Part) {
			return s.sectionTexts(ctx, id, h.LSN, &a.cut, bad)
		}
		return s.texts(ctx, id, a, bad)
	}
	texts, err := textsOf(h.ID)
	if err != nil || texts == nil || !q.Holds(texts, a.analyzer) {
		return false, err
	}
	if h.Parts.Self || !q.Excludes() {
		return true, nil
	}
	// The hit has no word itself. It counts only if a neighbour that excluded phrases do not rule out has one.
	ids, err := set.Neighbours(h.At)
	if err != nil {
		return false, err
	}
	for _, id := range ids {
		texts, err := textsOf(id)
		if err != nil || texts != nil && q.Lends(texts, a.analyzer) {
			return err == nil, err
		}
	}
	return false, nil
}

// texts returns the texts of a memory; nil if the memory was deleted or cannot be read. If it cannot be read, texts
// adds the error to bad.
func (s *Search) texts(ctx context.Context, id string, a *asked, bad *unreadable) ([]query.Text, error) {
	m, err := s.get(ctx, id)
	if err != nil {
		return nil, bad.pass(ctx, err)
	}
	return view.DocOf(&m, m.Version, a.from).Texts, nil
}
