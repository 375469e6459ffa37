package undo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/internal/view/counts"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/writer"
)

// tries is the maximum number of plans that one undo makes. Before the documents of a plan are restored, other writers
// may change them, and then another plan is needed. Each further plan means that another writer has made progress.
const tries = 100

// partBytes is the size in bytes of each commit of an undo that takes several commits. Other writers can commit between
// these commits.
const partBytes = 4 << 20

// errPlanAgain means that the plan of an undo is no longer valid, and another must be made.
var errPlanAgain = errors.New("the plan is no longer valid")

// Undo undoes the commits that the options select, and returns what it did. If there are conflicts and Options.Partial
// is not set, it changes nothing and the error is an *Error. If other writers change documents between the commits of
// an undo of several commits, Undo undoes the rest, and then also returns an *Error.
func (u *Undoer) Undo(ctx context.Context, o Options) (*Plan, error) {
	if err := u.engine.KeepWriters(ctx); err != nil {
		return nil, fmt.Errorf("preparing the log to record an undo: %w", err)
	}
	s, err := u.selection(ctx, o)
	if err != nil {
		return nil, err
	}
	r := &run{u: u, s: s, parts: s.continues}
	for try := 1; ; try++ {
		p, list, err := u.plan(ctx, s)
		if err == nil && !r.begun() {
			err = u.unknown(ctx, p)
		}
		if err != nil {
			return r.result(p), err
		}
		if r.plan == nil {
			r.plan = p
		}
		r.plan.Conflicts = p.Conflicts
		refused := (len(p.Conflicts) > 0 || len(p.Unread) > 0) && !s.Partial
		if refused && !r.begun() || len(list) == 0 {
			p = r.result(p)
			if refused {
				return p, &Error{p}
			}
			return p, nil
		}
		switch err := r.apply(ctx, list); {
		case errors.Is(err, errPlanAgain) && try < tries:
		case err != nil:
			if errors.Is(err, errPlanAgain) {
				err = fmt.Errorf("%w: the undo gave up after %d attempts, because the store keeps changing",
					errs.ErrConflict, tries)
			}
			return r.result(p), r.explain(err)
		default:
			p = r.result(p)
			if refused {
				return p, &Error{p}
			}
			return p, nil
		}
	}
}

// run is the execution of one undo.
type run struct {
	u     *Undoer
	s     *selection
	plan  *Plan // the first plan
	parts bool  // the undo is made in several commits
	done  int
	at    []wal.LSN
}

// begun reports whether the undo has already changed a document, in this run or in an earlier run that was
// interrupted. An undo that has begun does not give up because of conflicts: it makes the changes that are still
// possible.
func (r *run) begun() bool { return r.s.continues || len(r.at) > 0 }

// result returns the first plan of the run, or p if no plan was carried out yet, with the number of changes and the
// positions of the commits that were made. The result is nil if p is nil and there is no first plan.
func (r *run) result(p *Plan) *Plan {
	if r.plan != nil {
		p = r.plan
	}
	if p != nil {
		p.Done, p.Parts = r.done, r.at
	}
	return p
}

// explain adds to err, the error of an undo of several commits, the number of changes that were made and the advice to
// run the same undo again. If the undo has committed nothing, or takes one commit, explain returns err unchanged.
func (r *run) explain(err error) error {
	if len(r.at) == 0 || !r.parts {
		return err
	}
	return fmt.Errorf("%d of %d changes are taken back; run the same undo again to continue: %w", r.done,
		len(r.plan.Changes), err)
}

// writerContext returns the context for the commits of an undo. If the undo takes several commits, these commits
// get a writer of their own, whose description identifies the undo.
func (r *run) writerContext(ctx context.Context) context.Context {
	if !r.parts {
		return ctx
	}
	var w writer.Writer
	if in := engine.WriterIn(ctx); in != nil {
		w = *in
	}
	w.Undo = r.s.String()
	return engine.By(ctx, w)
}

// apply makes the changes of a plan. The error errPlanAgain means that another plan is needed. An undo that takes one
// commit has changed nothing in that case.
func (r *run) apply(ctx context.Context, list []*change) error {
	p := &part{run: r, later: map[string]bool{}}
	for _, c := range list {
		if c.kind == r.u.engine.Kinds().Assemblies {
			p.later[c.ID] = true
		}
	}
	if err := p.weigh(ctx, list); err != nil {
		return err
	}
	p.begin()
	ctx = r.writerContext(ctx)
	for len(list) > 0 { // one phase after the other; within a phase, in the order of the log
		n := 1
		for n < len(list) && r.u.phase(list[n]) == r.u.phase(list[0]) {
			n++
		}
		if err := p.load(ctx, list[:n]); err != nil {
			return err
		}
		list = list[n:]
	}
	err := p.commit(ctx, true)
	if err == nil && p.dirty {
		err = errPlanAgain
	}
	return err
}

// part is one commit of an undo, with the data that is common to all its commits.
type part struct {
	*run
	restoration *commit.Restoration
	docs        []*commit.Restored
	changes     []*change
	dirty       bool            // some changes of the plan could not be made
	later       map[string]bool // assemblies that are restored or deleted by a later commit
	rest        commit.Effects  // the effects of the changes that are not committed yet, if limits are set
}

func (p *part) begin() {
	limit := uint64(0)
	if p.parts {
		limit = min(partBytes, p.u.engine.Log().Limit()/2) // the other half is for assemblies that change along
	}
	p.restoration, p.docs, p.changes = p.u.commits.Restoration(limit), nil, nil
}

// weigh sets p.rest to the effects that all commits of the undo together have on the number and the bytes of memories.
// It does so only if the store has limits and the undo takes several commits, because between two of these commits the
// store may have more memories than after the last one. Otherwise p.rest is nil.
func (p *part) weigh(ctx context.Context, list []*change) error {
	if p.rest = nil; !p.parts || counts.LimitsOf(p.u.engine.Settings().Now()) == nil {
		return nil
	}
	p.rest = commit.Effects{}
	var back []*change
	for _, c := range list {
		if c.kind != p.u.engine.Kinds().Memories {
			continue
		}
		if c.Version != 0 {
			v, err := p.u.engine.Find(ctx, c.kind, c.ID, false)
			if err != nil && !errors.Is(err, errs.ErrNotFound) {
				return err
			}
			if err == nil {
				p.rest.Change(v.Line.SessionID, counts.Sum{N: -1, Bytes: -v.Line.Size})
			}
		}
		if c.source != 0 {
			back = append(back, c)
		}
	}
	return p.u.read(ctx, back, func(_ *change, e *wal.Entry) bool {
		line, _, err := state.LineIn(e)
		if e.Key[0] == record.Kept {
			line, _, err = state.KeptIn(e)
		}
		if err == nil {
			p.rest.Change(line.SessionID, counts.Sum{N: 1, Bytes: line.Size})
		}
		return true
	})
}

// load adds the changes in list to the commit. All of these changes must belong to one phase.
func (p *part) load(ctx context.Context, list []*change) error {
	if list[0].What == Delete {
		for _, c := range list {
			if err := p.add(ctx, c, &commit.Restored{Delete: true}); err != nil {
				return err
			}
		}
		return nil
	}
	var failed error
	n := 0
	err := p.u.read(ctx, list, func(c *change, e *wal.Entry) bool {
		n++
		line, doc, err := p.u.document(c, e)
		if err != nil {
			failed = p.refuse(c, err)
		} else {
			failed = p.add(ctx, c, &commit.Restored{Doc: doc, Line: line})
		}
		return failed == nil
	})
	if failed != nil || err != nil {
		return cmp.Or(failed, err)
	}
	if n < len(list) { // the plan says why
		return p.markStale()
	}
	return nil
}

// markStale records that the plan of the undo is no longer valid for a document. If the undo takes one commit,
// markStale returns errPlanAgain. Otherwise it returns nil, because the other changes of the plan are made first.
func (p *part) markStale() error {
	if p.dirty = true; p.parts {
		return nil
	}
	return errPlanAgain
}

// refuse records that the document of the change c cannot be restored; cause is the reason. refuse returns the
// result of markStale.
func (p *part) refuse(c *change, cause error) error {
	if rests := (*commit.RestsError)(nil); errors.As(cause, &rests) {
		cause = fmt.Errorf("%w: %w", ErrBuiltUpon, cause)
	}
	p.s.left[c.key] = Conflict{Err: cause}
	return p.markStale()
}

// add adds the change c to the commit; d describes what the commit writes for the change. If the commit has no room
// for it, add first commits the changes that were added before.
func (p *part) add(ctx context.Context, c *change, d *commit.Restored) error {
	v, ok, err := p.u.newest(ctx, c)
	if err != nil {
		return err
	}
	if !ok {
		return p.markStale()
	}
	d.Kind, d.ID, d.Was, d.Restores, d.Since = c.kind, c.ID, v, c.Restores, c.since
	for {
		fits, err := p.restoration.Add(d)
		var refused *commit.RefusedError
		switch {
		case errors.As(err, &refused):
			return p.refuse(c, refused.Err)
		case err != nil:
			return err
		case fits:
			p.docs, p.changes = append(p.docs, d), append(p.changes, c)
			return nil
		case !p.parts:
			p.parts = true
			return errPlanAgain
		}
		if err := p.commit(ctx, false); err != nil {
			return err
		}
		p.begin()
	}
}

// newest returns the newest version of the document that a change concerns. ok is false if another writer has written
// this version since the plan was made. Versions that only upkeep has written do not count.
func (u *Undoer) newest(ctx context.Context, c *change) (engine.Version, bool, error) {
	v, err := u.engine.Find(ctx, c.kind, c.ID, false)
	if errors.Is(err, errs.ErrNotFound) {
		gone := u.engine.State().Deletion(c.kind.Letter, c.ID)
		return engine.Version{}, c.Version == 0 && (gone == 0 || gone == c.last), nil
	}
	if err != nil || v.LSN == c.Version {
		return v, true, err
	}
	if c.Version == 0 {
		return v, false, nil
	}
	// An assembly may have changed along with a memory that was restored.
	e, err := u.engine.Log().ReadAt(ctx, v.LSN)
	if err != nil {
		return v, false, nil
	}
	view, err := state.Read(&e)
	return v, err == nil && e.Cause == wal.CauseUpkeep && view.Previous == c.Version, nil
}

// commit commits the changes that were added. last is true for the last commit of the undo. If commits of other
// writers conflict with the changes, commit omits the changes for which the plan is no longer valid and tries again;
// an undo of one commit returns errPlanAgain instead.
func (p *part) commit(ctx context.Context, last bool) error {
	for try := 1; p.restoration.Len() > 0; try++ {
		o := commit.RestoreOptions{Cause: wal.CauseUndo, Later: func(id string) bool { return p.later[id] }}
		if p.parts && (p.dirty || !last) {
			o.Cause = wal.CauseUndoing
		}
		if p.rest != nil {
			o.Rest = maps.Clone(p.rest)
			for session, sum := range p.restoration.Effects() {
				o.Rest.Change(session, counts.Sum{}.Minus(sum))
			}
		}
		at, err := p.restoration.Commit(ctx, o)
		var refused *commit.RefusedError
		switch {
		case err == nil:
			p.committed(at)
			p.rest = o.Rest
			return nil
		case errors.As(err, &refused) && refused.Index >= 0:
			if err := p.refuse(p.changes[refused.Index], refused.Err); err != nil {
				return err
			}
			p.rebuild(ctx, func(i int) bool { return i == refused.Index })
		case errors.Is(err, errs.ErrBatchTooLarge) && !p.parts:
			p.parts = true
			return errPlanAgain
		case errors.Is(err, errs.ErrBatchTooLarge) && p.restoration.Len() > 1:
			return p.halves(ctx, last)
		case errors.Is(err, errs.ErrConflict) && !p.parts:
			return errPlanAgain
		case errors.Is(err, errs.ErrConflict) && try < tries:
			p.rebuild(ctx, func(int) bool { return false })
		default:
			return err
		}
	}
	return nil
}

// committed records that the changes were committed. pos is the position of the first entry of the commit.
func (p *part) committed(pos wal.LSN) {
	p.done += len(p.changes)
	p.at = append(p.at, pos)
	for _, c := range p.changes {
		if c.kind == p.u.engine.Kinds().Assemblies {
			delete(p.later, c.ID)
		}
	}
}

// rebuild prepares the commit again. It omits each change for whose index skip returns true, and each change for
// which the plan is no longer valid.
func (p *part) rebuild(ctx context.Context, skip func(i int) bool) {
	docs, changes := p.docs, p.changes
	p.begin()
	for i, c := range changes {
		if skip(i) {
			continue
		}
		v, ok, err := p.u.newest(ctx, c)
		if err == nil && ok {
			docs[i].Was = v
			ok, err = p.restoration.Add(docs[i])
		}
		if err != nil || !ok {
			p.dirty = true // the next plan says why
			continue
		}
		p.docs, p.changes = append(p.docs, docs[i]), append(p.changes, c)
	}
}

// halves commits the changes in two commits, half of them in each. It is called if the changes are too large for one
// commit, because assemblies must change together with them.
func (p *part) halves(ctx context.Context, last bool) error {
	docs, changes := p.docs, p.changes
	half := len(docs) / 2
	p.rebuild(ctx, func(i int) bool { return i >= half })
	if err := p.commit(ctx, false); err != nil {
		return err
	}
	p.docs, p.changes = docs, changes
	p.rebuild(ctx, func(i int) bool { return i < half })
	return p.commit(ctx, last)
}
