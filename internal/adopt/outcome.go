package adopt

import (
	"context"

	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/wal"
)

// carryOut acts on verdicts about files: it adopts, restores or reports each file, and sets the result in each verdict.
func (ed *Adopter) carryOut(ctx context.Context, held *wal.Held, k *engine.Kind, list []*Verdict) {
	ed.AdoptAll(ctx, held, k, list)
	var back []*Verdict
	for _, v := range list {
		if v.Err == nil && v.back {
			back = append(back, v)
		}
	}
	if len(back) == 0 {
		return
	}
	edits, err := ed.putAllBack(ctx, held, k, back)
	var restored []docfile.Edit
	for _, v := range back {
		if v.restored {
			for _, e := range edits {
				if e.Name == k.FileName(v.ID) {
					restored = append(restored, e)
				}
			}
		}
		switch {
		case !v.restored:
			v.Err = err
		case err != nil:
			ed.engine.Env().Logger.Error("restoring a damaged file", "id", v.ID, "err", err)
		default:
			ed.engine.Env().Event(env.Event{Kind: env.EventRestored, ID: v.ID, Path: k.File(v.ID), LSN: v.Version.LSN,
				Writer: ed.engine.Writer(v.Version.Line.By, v.Version.LSN), Note: v.note})
		}
	}
	// A file that was empty may have been half saved, and the rest saved since.
	ed.AdoptAside(ctx, held, restored)
}

// PutBack writes a version of a document back into its file.
func (ed *Adopter) PutBack(ctx context.Context, held *wal.Held, k *engine.Kind, id string, v engine.Version) error {
	_, err := ed.putAllBack(ctx, held, k, []*Verdict{{ID: id, Version: v}})
	return err
}

// putAllBack writes versions back into their files. The store did not write the existing files, so the round of the
// flusher moves them to quarantine and returns them as edits.
func (ed *Adopter) putAllBack(ctx context.Context, _ *wal.Held, k *engine.Kind,
	list []*Verdict) ([]docfile.Edit, error) {
	changes := make([]docfile.Change, len(list))
	for i, is := range list {
		v := is.Version
		changes[i] = docfile.Change{
			Folder: k.Folder, Name: k.FileName(is.ID), Mtime: engine.TimeOf(&v.Line), ID: is.ID, Version: v.LSN,
			Data: func() ([]byte, error) { return v.Doc, nil },
		}
	}
	result, err := ed.flusher.Files().Round(ctx, changes)
	ed.flusher.Edited(ctx, result.Edits)
	if err != nil || len(result.Blocked) == 0 {
		return result.Edits, err
	}
	edits := result.Edits
	var again []docfile.Change
	for _, b := range result.Blocked {
		c := &changes[b.Change]
		if err := ed.flusher.MoveAway(c, b.Err); err != nil {
			return edits, err
		}
		again = append(again, *c)
	}
	if result, err = ed.flusher.Files().Round(ctx, again); err == nil && len(result.Blocked) > 0 {
		err = result.Blocked[0].Err
	}
	ed.flusher.Edited(ctx, result.Edits)
	return append(edits, result.Edits...), err
}
