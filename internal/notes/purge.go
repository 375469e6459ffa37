package notes

import (
	"context"
	"errors"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/history"
	"github.com/varve-db/varve/internal/note"
)

// Kind returns the kind of notes.
func (ns *Notes) Kind() *engine.Kind { return ns.kind }

// Traces returns the ids of all documents that belong to the note at a path and to no other note: the note, its
// sidecar, and, for each earlier path of the note at which there is no note now, the document and the sidecar at
// that path. others has the versions of the note at the earlier paths at which there is another note now.
func (ns *Notes) Traces(ctx context.Context, path string) (ids []string, others []note.Move, err error) {
	if err := note.CheckPath(path); err != nil {
		return nil, nil, err
	}
	s, err := ns.load(ctx, path)
	if err != nil && !errors.Is(err, errs.ErrInvalid) {
		return nil, nil, failed(path, err)
	}
	ids = []string{path, note.SidecarOf(path)}
	since := uint64(0)
	for _, m := range s.sidecar.Moves {
		from := max(ns.began(ctx, m), since)
		since = m.Version
		if m.Path == path {
			continue
		}
		now, err := ns.find(ctx, m.Path)
		if err != nil {
			return nil, nil, failed(m.Path, err)
		}
		if now.LSN == 0 {
			ids = append(ids, m.Path, note.SidecarOf(m.Path))
			continue
		}
		ns.history.Each(ctx, ns.kind, m.Path, func(v history.Version, err error) bool {
			if err == nil && !v.Deleted && v.LSN >= from && v.LSN <= m.Version && v.LSN != now.LSN {
				others = append(others, note.Move{Path: m.Path, Version: v.LSN})
			}
			return true
		})
	}
	return ids, others, nil
}

// Twins returns the versions of the note at a path that have the same content as the given version because of renames.
// A rename creates a version with the same content at the new path; Twins follows such renames in both directions.
func (ns *Notes) Twins(ctx context.Context, path string, version uint64) (twins []note.Move, err error) {
	var list []history.Version
	at := -1
	if err := ns.lineage(ctx, path, func(v history.Version) {
		if v.Document = nil; !v.Deleted {
			if list = append(list, v); v.LSN == version {
				at = len(list) - 1
			}
		}
	}); err != nil || at < 0 {
		return nil, err
	}
	moved := func(i int) bool { return list[i-1].ID != list[i].ID && list[i-1].ContentHash == list[i].ContentHash }
	for i := at; i > 0 && moved(i); i-- {
		twins = append(twins, note.Move{Path: list[i-1].ID, Version: list[i-1].LSN})
	}
	for i := at + 1; i < len(list) && moved(i); i++ {
		twins = append(twins, note.Move{Path: list[i].ID, Version: list[i].LSN})
	}
	return twins, nil
}
