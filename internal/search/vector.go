package search

import (
	"cmp"
	"context"
	"errors"
	"math"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index/table"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/template"
	"github.com/varve-db/varve/internal/view/vectors"
	"github.com/varve-db/varve/vector"
)

// timedShare limits the memories that a vector search looks up by time: at most 1 in timedShare memories. If filters
// on times leave more memories than that, looking up each of them costs more than scanning the vectors and applying
// the filters to the nearest memories.
const timedShare = 16

// comparedShare limits comparing memories one by one with the vector of a query: this is done if filters on content
// leave at most 1 in comparedShare of all memories. Otherwise the filters are applied during the search of the
// vectors.
const comparedShare = 4

// nearest returns the n memories whose embeddings are nearest to v and whose scores are at least minScore. The
// search is exact. If the filters (by session, prefix, words or times) leave few memories, only these are looked
// up and compared. Otherwise the filters are applied to the candidates, beginning with the nearest. Errors of
// memories that cannot be read are added to bad.
func (s *Search) nearest(ctx context.Context, v []float32, f *engine.Filters, n int, minScore float64, bad *unreadable,
	model string) ([]found, error) {
	q := vector.Query{Kind: vector.Memories, Vector: v, Limit: n, Workers: s.Scanners()}
	if !math.IsInf(minScore, -1) {
		q.MinScore = minScore
	}
	ids, ok, err := engine.Among(ctx, s.engine, f, comparedShare)
	if timed := f.Happened != (engine.Span{}) || f.Created != (engine.Span{}) ||
		f.Updated != (engine.Span{}); timed && err == nil && !ok {
		if ids, ok, err = engine.Timed(ctx, s.engine, f, timedShare); err != nil && ctx.Err() == nil {
			ok, err = false, nil // each candidate is judged
		}
	}
	switch {
	case err != nil:
		return nil, err
	case ok:
		q.Keys, q.Accept = append([]string{}, ids...), s.passes(ctx, f, bad)
	case f.Session != nil || f.Prefix != "":
		q.Keys = []string{}
		for id, err := range s.engine.IDs(ctx, s.engine.Kinds().Memories, *f) {
			switch {
			case err == nil:
				q.Keys = append(q.Keys, id)
			case ended(ctx, err) != nil:
				return nil, ended(ctx, err)
			default:
				bad.add(err)
			}
		}
		if f.Reads() {
			q.Accept = s.passes(ctx, f, bad)
		}
	case !f.All() || s.engine.AnyExpiry(ctx):
		q.Accept = s.passes(ctx, f, bad)
	}
	hits, err := s.searchVectors(ctx, q, model)
	list := make([]found, len(hits))
	for i, h := range hits {
		list[i] = found{ID: h.Key, Score: h.Score, similarity: h.Score}
	}
	return list, err
}

// nearestSections returns the n notes that have the sections nearest to the vector of q, each with its nearest
// section. The score of a section must be at least minScore, and its note must pass the filters. Errors of notes that
// cannot be read are added to bad.
func (s *Search) nearestSections(ctx context.Context, q *Query, f *engine.Filters, n int, minScore float64,
	bad *unreadable) ([]found, error) {
	view, err := s.vectors.View(ctx)
	if err != nil {
		return nil, err
	}
	metric, dim := view.Metric(), view.Dim()
	err = s.sameModel(q.Model, view)
	if rerr := view.Release(); err == nil {
		err = rerr
	}
	switch {
	case err != nil:
		return nil, err
	case dim != 0 && len(q.Vector) != dim:
		return nil, s.vectors.OtherDimension("query Vector", len(q.Vector), dim)
	case metric == vector.IP && vector.Norm(q.Vector) == 0:
		return nil, &errs.FieldError{Field: "query Vector", Err: errors.New("all numbers of the vector are zero, so " +
			"it has no direction to compare")}
	}
	notes := s.firstOfNotes(ctx, f, bad)
	hits, err := s.meanings.Search(ctx, q.Vector, metric, n, minScore,
		func(path string) (bool, error) { return notes.judge(ctx, path) })
	list := make([]found, len(hits))
	for i, h := range hits {
		list[i] = found{ID: h.Path, note: true, section: h.Section, lsn: h.LSN, Score: h.Score, similarity: h.Score}
	}
	return list, err
}

// passes returns a function that reports whether a memory passes the filters. If the memory cannot be read, the
// function returns false and adds the error to bad. The function returns an error only if the search must end, because
// ctx has ended for example.
func (s *Search) passes(ctx context.Context, f *engine.Filters, bad *unreadable) func(id string) (bool, error) {
	no := func(err error) (bool, error) { return false, bad.pass(ctx, err) }
	return func(id string) (bool, error) {
		v, err := s.engine.Find(ctx, s.engine.Kinds().Memories, id, false)
		if err != nil {
			return no(err)
		}
		if !f.Line(id, &v.Line, s.engine.Env().Clock()) || f.After != "" && !sortsAfter(id, f.After) {
			return false, nil
		}
		if !f.Reads() {
			return true, nil
		}
		m, err := s.get(ctx, id)
		if err != nil {
			return no(err)
		}
		return f.Memory(&m), nil
	}
}

// searchVectors searches the vectors in their present state. If they are damaged, it rebuilds them and searches again.
// model is the model that made q.Vector; "" if it is unknown.
func (s *Search) searchVectors(ctx context.Context, q vector.Query, model string) ([]vector.Hit, error) {
	for tries, changes := 0, 0; ; tries++ {
		was := s.engine.State().Model().LSN
		view, err := s.vectors.View(ctx)
		if err != nil {
			return nil, err
		}
		if model != "" && s.engine.State().Model().LSN != was && changes < engine.FindTries {
			_ = view.Release() // the view may be of the old or the new model
			tries, changes = tries-1, changes+1
			continue
		}
		if err := s.sameModel(model, view); err != nil {
			_ = view.Release() // nothing was read from it
			return nil, err
		}
		hits, err := view.Search(ctx, q)
		if dim := view.Dim(); errors.Is(err, vector.ErrDimension) && dim != 0 {
			err = s.vectors.OtherDimension("query Vector", len(q.Vector), dim)
		}
		if rerr := view.Release(); err == nil && rerr != nil {
			err = rerr
		}
		if !errors.Is(err, errs.ErrCorrupt) || tries == 2 {
			return hits, err
		}
		if err := s.vectorsRot(ctx, err); !errors.Is(err, vectors.ErrBehind) {
			return nil, err
		}
	}
}

// sameModel returns a *ModelError if the vectors of view were made by another model than asked, the model of the
// query's vector. It returns nil if one of the two models is unknown.
func (s *Search) sameModel(asked string, view *vector.View) error {
	if asked == "" {
		return nil
	}
	model := s.vectors.Model()
	has := cmp.Or(model.Name, s.engine.Settings().Now().VectorsModel(), view.Set().Model())
	if has == "" || template.Model(has) == template.Model(asked) {
		return nil
	}
	e := &errs.ModelError{Model: has, Other: asked, Next: model.Next, Query: true}
	if model.Switching() {
		e.Since = model.Since
	}
	return e
}

func (s *Search) vectorsRot(ctx context.Context, err error) error {
	if lerr := s.vectors.Lock.Lock(ctx); lerr != nil {
		return lerr
	}
	defer s.vectors.Lock.Unlock()
	return s.vectors.Fault(err)
}

// sortsAfter reports whether id comes after other in the order of a listing.
func sortsAfter(id, other string) bool {
	a, aerr := table.EncodeKey(id)
	b, berr := table.EncodeKey(other)
	return aerr == nil && berr == nil && a > b
}
