package views

import (
	"cmp"
	"context"
	"errors"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/view"
	"github.com/varve-db/varve/internal/view/meanings"
)

// ErrNoIndex is the error of AddMeanings before the first index is written.
var ErrNoIndex = errors.New("the first index of the store is not written yet")

// errBusy is the error of AddMeanings when vectors cannot be added now.
var errBusy = errors.New("a purge is rewriting the files of views")

// AddMeanings adds vectors of note sections to the files of the view of meanings. It creates the files if they do not
// exist. It takes flush.lock. model is the name by which this store records the model of the vectors. AddMeanings skips
// vectors of texts that no section has any more. If the store's model is another one by now, it skips all vectors. n is
// the number of vectors that it added.
func (vs *Views) AddMeanings(ctx context.Context, model string, list []meanings.Vector) (n int, err error) {
	held, err := vs.engine.Log().LockFlush(ctx)
	if err != nil {
		return 0, err
	}
	defer held.Unlock()
	if vs.kept != nil || vs.stale || vs.engine.Log().Purges().Running() || vs.engine.Log().Purges().Failed() {
		return 0, errors.Join(errBusy, vs.kept)
	}
	v := vs.meanings()
	if v == nil || v.Absent() {
		return 0, nil
	}
	if ready, err := vs.enter(held); err != nil || !ready {
		return 0, cmp.Or(err, errs.ErrLocked)
	}
	set := vs.engine.State().Set()
	if set == nil {
		return 0, errs.ErrClosed
	}
	defer set.Release()
	if _, ok := view.MarkOf(set); !ok {
		return 0, ErrNoIndex
	}
	if err := vs.complete(ctx, held, v, set, false); err != nil {
		return 0, err
	}
	live, err := vs.near.Live(ctx, list) // a text may have been purged since its vector was computed
	if err != nil || len(live) == 0 {
		return 0, err
	}
	f := vs.engine.ViewFolder(v.Name())
	at, err := v.Load(f)
	if err != nil {
		return 0, err
	}
	if n, err = v.Add(model, vs.engine.Log().Applied(), live); err != nil || n == 0 {
		return 0, err
	}
	return n, v.Save(context.WithoutCancel(ctx), f, at) // the embedder may have been paid for the vectors
}

// meanings returns the instance of the view of meanings that writes files; nil if the store has no such view.
func (vs *Views) meanings() *meanings.Meanings {
	for _, v := range vs.list {
		if m, ok := v.(*meanings.Meanings); ok {
			return m
		}
	}
	return nil
}
