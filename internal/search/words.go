package search

import (
	"context"
	"errors"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/engine"
	view "github.com/varve-db/varve/internal/view/words"
	"github.com/varve-db/varve/internal/words"
	"github.com/varve-db/varve/internal/words/query"
)

// byWords returns the n memories that match a text best.
func (s *Search) byWords(ctx context.Context, of *Query, f *engine.Filters, n int, least float64, bad *unreadable,
	a *asked) (list []found, err error) {
	err = s.words.With(ctx, func(snap *view.Snapshot) error {
		list, *bad = nil, unreadable{}
		q, err := of.parsedIn(snap)
		if err != nil {
			return err
		}
		*a = asked{q, snap.Analyzer, snap.From}
		filter := words.Filter{Session: f.Session, Prefix: f.Prefix, Rarest: of.MaxRareTerms, Each: snap.Each}
		if f.Happened != (engine.Span{}) {
			from, before := engine.Micros(f.Happened) // near the bounds the document decides
			filter.From, filter.Before = &from, &before
		}
		if filter.Only, _, err = snap.Narrow(f, s.engine.Tune().Few); err != nil {
			return err
		}
		if q.Size() > query.MostWords && of.MaxRareTerms == 0 { // this analyzer gives more words than the one in validate
			return tooManyWords(q.Size())
		}
		hits, err := snap.Set.Search(ctx, q, filter, n, least, s.accepts(ctx, a, snap, f, bad))
		if err != nil {
			return err
		}
		shares := make([][]words.Share, len(hits))
		if of.Explain {
			if shares, err = snap.Set.Explain(ctx, q, filter, hits); err != nil {
				return err
			}
		}
		for i, h := range hits {
			list = append(list, found{ID: h.ID, Score: h.Score})
			list[i].keep(&h, shares[i])
		}
		return nil
	})
	return list, err
}

// accepts returns a function that checks what the words cannot decide; nil if they decide everything.
func (s *Search) accepts(ctx context.Context, a *asked, snap *view.Snapshot, f *engine.Filters,
	bad *unreadable) func(words.Hit) (bool, error) {
	q := a.query
	left := *f
	left.Session, left.Prefix = nil, ""
	var passes func(id string) (bool, error)
	if !left.All() || s.engine.AnyExpiry(ctx) {
		passes = s.passes(ctx, &left, bad)
	}
	if passes == nil && !q.Phrases() {
		return nil
	}
	return func(h words.Hit) (bool, error) {
		if passes != nil {
			if ok, err := passes(h.ID); err != nil || !ok {
				return false, err
			}
		}
		if !q.Phrases() {
			return true, nil
		}
		texts, err := s.texts(ctx, h.ID, a, bad)
		if err != nil || texts == nil || !q.Holds(texts, a.analyzer) {
			return false, err
		}
		if h.Parts.Self || !q.Excludes() {
			return true, nil
		}
		// The hit has no word itself. It counts only if a neighbour that excluded phrases do not rule out has one.
		ids, err := snap.Set.Neighbours(h.At)
		if err != nil {
			return false, err
		}
		for _, id := range ids {
			texts, err := s.texts(ctx, id, a, bad)
			if err != nil || texts != nil && q.Lends(texts, a.analyzer) {
				return err == nil, err
			}
		}
		return false, nil
	}
}

// texts returns the texts of a memory; nil if it was deleted or cannot be read. In the latter case the error is added
// to bad.
func (s *Search) texts(ctx context.Context, id string, a *asked, bad *unreadable) ([]query.Text, error) {
	m, err := s.get(ctx, id)
	switch {
	case ended(ctx, err) != nil:
		return nil, ended(ctx, err)
	case errors.Is(err, errs.ErrNotFound):
		return nil, nil
	case err != nil:
		bad.add(err)
		return nil, nil
	}
	return view.DocOf(&m, m.Version, a.from).Texts, nil
}
