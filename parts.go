package varve

import (
	"context"
	"errors"

	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/wal"
)

// part is what one document adds to a commit of many that have nothing to do with each
// other: files that somebody edited, or deleted.
type part struct {
	id           string
	entry        wal.Entry
	precondition wal.Precondition
	model        wal.Precondition // no key: it does not depend on what makes the vectors
	change       memoryChange
	err          error // what became of it
}

// Bounds on one commit of many, and on what is held in memory for it.
const (
	partsMost  = 512
	partsBytes = 4 << 20
)

// commitParts commits what can be, in few commits, and says of each part what became of
// it: one that does not fit, or that somebody else changed meanwhile, keeps only itself
// out. flush.lock is held.
func (st *Store) commitParts(ctx context.Context, k *kind, list []*part) {
	for len(list) > 0 {
		n, bytes := 0, 0
		for n < len(list) && (n == 0 || n < partsMost && bytes+len(list[n].entry.Value) <= partsBytes) {
			bytes += len(list[n].entry.Value)
			n++
		}
		st.commitTogether(ctx, k, list[:n:n])
		list = list[n:]
	}
}

func (st *Store) commitTogether(ctx context.Context, k *kind, list []*part) {
	for len(list) > 0 {
		err := st.commitBatch(ctx, k, list)
		var conflict *wal.ConflictError
		switch {
		case err == nil:
			return
		case errors.As(err, &conflict) && conflict.Index < len(list):
			p := list[conflict.Index]
			p.err = &errs.ConflictError{ID: p.id, Expected: conflict.LSN, Found: conflict.Found}
			list = st.unchanged(ctx, k, append(list[:conflict.Index:conflict.Index], list[conflict.Index+1:]...))
			continue
		case len(list) == 1 || errors.Is(err, errs.ErrConflict) || forAll(ctx, err):
			for _, p := range list {
				p.err = err
			}
			return
		}
		// One of them will not go, or all together are too much.
		st.commitTogether(ctx, k, list[:len(list)/2:len(list)/2])
		list = list[len(list)/2:]
	}
}

// forAll says of an error that it is not about one document.
func forAll(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return true
	}
	for _, all := range []error{errs.ErrClosed, errs.ErrReadOnly, errs.ErrDiskFull, errs.ErrSyncFailed, errs.ErrOutcomeUnknown, errs.ErrPermission, errs.ErrLocked} {
		if errors.Is(err, all) {
			return true
		}
	}
	return false
}

// unchanged are the parts that still stand after somebody was seen to write: the others
// get ErrConflict.
func (st *Store) unchanged(ctx context.Context, k *kind, list []*part) []*part {
	if err := st.log.CatchUp(ctx); err != nil {
		return list // the log will say
	}
	left := list[:0]
	for _, p := range list {
		if now, err := st.state.Current(k.key(p.id)); err == nil && now != p.precondition.LSN {
			p.err = &errs.ConflictError{ID: p.id, Expected: p.precondition.LSN, Found: now}
			continue
		}
		left = append(left, p)
	}
	return left
}

// commitBatch commits all of them or none. The preconditions of the batch begin with
// theirs, in order.
func (st *Store) commitBatch(ctx context.Context, k *kind, list []*part) error {
	b := &wal.Batch{}
	var model wal.Precondition
	changes := make(map[string]memoryChange, len(list))
	for _, p := range list {
		b.Entries = append(b.Entries, p.entry)
		b.Preconditions = append(b.Preconditions, p.precondition)
		changes[p.id] = p.change
		if p.model.Key == "" {
			continue
		}
		if model.Key != "" && model.LSN != p.model.LSN {
			return errs.ErrConflict // it was changed while they were judged
		}
		model = p.model
	}
	if model.Key != "" {
		b.Preconditions = append(b.Preconditions, model)
	}
	if k == st.kinds.memories {
		if err := st.goAlong(ctx, changes, b); err != nil {
			return err
		}
	}
	if _, err := st.log.Append(ctx, b); err != nil {
		return err
	}
	for i, p := range list {
		p.entry.LSN = b.Entries[i].LSN
	}
	st.flusher.changed(st, len(b.Entries))
	return nil
}

// carryOut does what was judged; flush.lock is held. Each verdict has its own outcome.
func (st *Store) carryOut(ctx context.Context, k *kind, list []*verdict) {
	st.adoptAll(ctx, k, list)
	var back []*verdict
	for _, v := range list {
		if v.err == nil && v.back {
			back = append(back, v)
		}
	}
	if len(back) == 0 {
		return
	}
	edits, err := st.putAllBack(ctx, k, back)
	var restored []docfile.Edit
	for _, v := range back {
		if v.restored {
			for _, e := range edits {
				if e.Name == docfile.FileName(v.id) {
					restored = append(restored, e)
				}
			}
		}
		switch {
		case !v.restored:
			v.err = err
		case err != nil:
			st.env.Logger.Error("putting a damaged file back", "id", v.id, "err", err)
		default:
			st.env.Event(env.Event{Kind: env.EventRestored, ID: v.id, Path: k.file(v.id), LSN: v.version.lsn})
		}
	}
	// A file that was empty may have been half saved, and the rest have come since.
	st.adoptAside(ctx, restored)
}

// putBack puts a version into its file again; flush.lock is held.
func (st *Store) putBack(ctx context.Context, k *kind, id string, v version) error {
	_, err := st.putAllBack(ctx, k, []*verdict{{id: id, version: v}})
	return err
}

// putAllBack puts versions into their files again; flush.lock is held. What stands
// there is not ours, and the round sets it aside: the edits.
func (st *Store) putAllBack(ctx context.Context, k *kind, list []*verdict) ([]docfile.Edit, error) {
	changes := make([]docfile.Change, len(list))
	for i, is := range list {
		v := is.version
		changes[i] = docfile.Change{
			Folder: k.Folder, Name: docfile.FileName(is.id), Mtime: timeOf(&v.line), ID: is.id, Version: v.lsn,
			Data: func() ([]byte, error) { return v.doc, nil },
		}
	}
	result, err := st.flusher.files.Round(ctx, changes)
	st.edited(ctx, result.Edits)
	if err != nil || len(result.Blocked) == 0 {
		return result.Edits, err
	}
	edits := result.Edits
	var again []docfile.Change
	for _, b := range result.Blocked {
		c := &changes[b.Change]
		if err := st.moveAway(c, b.Err); err != nil {
			return edits, err
		}
		again = append(again, *c)
	}
	if result, err = st.flusher.files.Round(ctx, again); err == nil && len(result.Blocked) > 0 {
		err = result.Blocked[0].Err
	}
	st.edited(ctx, result.Edits)
	return append(edits, result.Edits...), err
}
