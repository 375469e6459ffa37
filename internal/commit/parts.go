package commit

import (
	"context"
	"errors"
	"slices"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/wal"
)

// Limits of one commit of many independent changes, which bound the memory that it needs.
const (
	PartsMost  = 512
	PartsBytes = 4 << 20
)

// Part is the change of one document in a commit of many independent changes: files that a user edited or deleted.
type Part struct {
	ID           string
	Entry        wal.Entry
	Precondition wal.Precondition
	// precondition on the store's embedding model; if its key is empty, the part does not depend on the model
	Model  wal.Precondition
	Places *Places // not nil: the document is created, on the condition of these Places
	Change MemoryChange
	Err    error // the result: why the part was not committed, nil if it was
}

// CommitParts commits the parts that can be committed, in few commits, and sets the result in each part (Part.Err). If
// a part is too large for a commit, or if another writer changed its document meanwhile, the other parts are committed
// nevertheless.
func (cm *Committer) CommitParts(ctx context.Context, held *wal.Held, k *engine.Kind, list []*Part) {
	for len(list) > 0 {
		n, bytes := 0, 0
		for n < len(list) && (n == 0 || n < PartsMost && bytes+len(list[n].Entry.Value) <= PartsBytes) {
			bytes += len(list[n].Entry.Value)
			n++
		}
		cm.commitTogether(ctx, held, k, list[:n:n])
		list = list[n:]
	}
}

func (cm *Committer) commitTogether(ctx context.Context, held *wal.Held, k *engine.Kind, list []*Part) {
	for len(list) > 0 {
		err := cm.CommitTogether(ctx, held, k, list)
		var conflict *wal.ConflictError
		switch {
		case err == nil:
			return
		case errors.As(err, &conflict) && conflict.Index < len(list):
			p := list[conflict.Index]
			p.Err = &errs.ConflictError{ID: p.ID, Expected: conflict.LSN, Found: conflict.Found}
			list = cm.unchanged(ctx, k, append(list[:conflict.Index:conflict.Index], list[conflict.Index+1:]...))
			continue
		case conflict != nil && slices.ContainsFunc(list, func(p *Part) bool { return p.rests(conflict) }):
			left := list[:0:0]
			for _, p := range list {
				if p.rests(conflict) {
					p.Err = &errs.ConflictError{ID: p.ID, Found: conflict.Found}
				} else {
					left = append(left, p)
				}
			}
			list = left
			continue
		case len(list) == 1 || errors.Is(err, errs.ErrConflict) || forAll(ctx, err):
			for _, p := range list {
				p.Err = err
			}
			return
		}
		// One part cannot be committed, or all together are too large.
		cm.commitTogether(ctx, held, k, list[:len(list)/2:len(list)/2])
		list = list[len(list)/2:]
	}
}

// forAll reports whether an error concerns all parts, and not a single document.
func forAll(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return true
	}
	for _, all := range []error{errs.ErrClosed, errs.ErrReadOnly, errs.ErrDiskFull, errs.ErrSyncFailed,
		errs.ErrOutcomeUnknown, errs.ErrPermission, errs.ErrLocked} {
		if errors.Is(err, all) {
			return true
		}
	}
	return false
}

// unchanged reads new entries of the log, and returns the parts whose documents have not changed. It sets the error of
// each other part to a *errs.ConflictError.
func (cm *Committer) unchanged(ctx context.Context, k *engine.Kind, list []*Part) []*Part {
	if err := cm.engine.Log().CatchUp(ctx); err != nil {
		return list // the log will report it
	}
	left := list[:0]
	for _, p := range list {
		if now, err := cm.engine.State().Current(k.Key(p.ID)); err == nil && now != p.Precondition.LSN {
			p.Err = &errs.ConflictError{ID: p.ID, Expected: p.Precondition.LSN, Found: now}
			continue
		}
		left = append(left, p)
	}
	return left
}

// rests reports whether a conflict is about the path of a document that the part creates: another document makes
// the path impossible (see Places).
func (p *Part) rests(c *wal.ConflictError) bool {
	return p.Places != nil && p.Places.demand == c.Precondition
}

// begin prepares the store for the first document of a kind. It creates the folder of the kind, and ensures that every
// program that has the store open to write knows the kind. The folder is created before the feature is raised: so if a
// store has the feature and no folder, the folder was removed.
func (cm *Committer) begin(ctx context.Context, held *wal.Held, k *engine.Kind) error {
	if k.Feature == 0 || cm.engine.Log().Features()&k.Feature != 0 {
		return nil
	}
	if err := k.Make(); err != nil {
		return err
	}
	return cm.raise(ctx, held, k.Feature)
}

// CommitTogether commits all parts or none. In the batch, the preconditions of the parts come first, in order.
func (cm *Committer) CommitTogether(ctx context.Context, held *wal.Held, k *engine.Kind, list []*Part) error {
	if err := cm.begin(ctx, held, k); err != nil {
		return err
	}
	if held != nil {
		ctx = held.In(ctx)
	}
	b := &wal.Batch{}
	var model wal.Precondition
	var places []wal.Precondition
	changes := make(map[string]MemoryChange, len(list))
	for _, p := range list {
		b.Entries = append(b.Entries, p.Entry)
		b.Preconditions = append(b.Preconditions, p.Precondition)
		changes[p.ID] = p.Change
		if d := p.Places.precondition(); d != (wal.Precondition{}) && !slices.Contains(places, d) {
			places = append(places, d)
		}
		if p.Model.Key == "" {
			continue
		}
		if model.Key != "" && model.LSN != p.Model.LSN {
			return errs.ErrConflict // the model was changed while the parts were judged
		}
		model = p.Model
	}
	if model.Key != "" {
		b.Preconditions = append(b.Preconditions, model)
	}
	b.Preconditions = append(b.Preconditions, places...)
	if k == cm.engine.Kinds().Memories {
		if err := cm.goAlong(ctx, held, changes, b); err != nil {
			return err
		}
	}
	kept, err := cm.keep(ctx, held, b.Entries)
	if err != nil {
		return err
	}
	if len(kept) > 0 {
		b.Entries, b.Frees = append(kept, b.Entries...), false
	}
	if _, err := cm.engine.Append(ctx, b); err != nil {
		return err
	}
	for i, p := range list {
		p.Entry.LSN = b.Entries[len(kept)+i].LSN
	}
	cm.pace.Wake(len(b.Entries))
	return nil
}
