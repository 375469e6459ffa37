package varve

import (
	"context"

	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/env"
)

// carryOut does what was judged; flush.lock is held. Each verdict has its own outcome.
func (st *Store) carryOut(ctx context.Context, k *engine.Kind, list []*verdict) {
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
			st.engine.Env.Logger.Error("putting a damaged file back", "id", v.id, "err", err)
		default:
			st.engine.Env.Event(env.Event{Kind: env.EventRestored, ID: v.id, Path: k.File(v.id), LSN: v.version.LSN})
		}
	}
	// A file that was empty may have been half saved, and the rest have come since.
	st.adoptAside(ctx, restored)
}

// putBack puts a version into its file again; flush.lock is held.
func (st *Store) putBack(ctx context.Context, k *engine.Kind, id string, v engine.Version) error {
	_, err := st.putAllBack(ctx, k, []*verdict{{id: id, version: v}})
	return err
}

// putAllBack puts versions into their files again; flush.lock is held. What stands
// there is not ours, and the round sets it aside: the edits.
func (st *Store) putAllBack(ctx context.Context, k *engine.Kind, list []*verdict) ([]docfile.Edit, error) {
	changes := make([]docfile.Change, len(list))
	for i, is := range list {
		v := is.version
		changes[i] = docfile.Change{
			Folder: k.Folder, Name: docfile.FileName(is.id), Mtime: engine.TimeOf(&v.Line), ID: is.id, Version: v.LSN,
			Data: func() ([]byte, error) { return v.Doc, nil },
		}
	}
	result, err := st.flusher.Files.Round(ctx, changes)
	st.flusher.Edited(ctx, result.Edits)
	if err != nil || len(result.Blocked) == 0 {
		return result.Edits, err
	}
	edits := result.Edits
	var again []docfile.Change
	for _, b := range result.Blocked {
		c := &changes[b.Change]
		if err := st.flusher.MoveAway(c, b.Err); err != nil {
			return edits, err
		}
		again = append(again, *c)
	}
	if result, err = st.flusher.Files.Round(ctx, again); err == nil && len(result.Blocked) > 0 {
		err = result.Blocked[0].Err
	}
	st.flusher.Edited(ctx, result.Edits)
	return append(edits, result.Edits...), err
}
