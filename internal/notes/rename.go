package notes

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/note"
)

// Rename moves the note at path from, or all notes of the folder from, to path to, in one commit. It returns the
// number of moved notes. It returns an error if a note or a folder is at path to, or if to is inside from.
func (ns *Notes) Rename(ctx context.Context, from, to string) (n int, err error) {
	end, err := ns.using(true, from, to)
	if err != nil {
		return 0, err
	}
	defer end()
	switch {
	case from == to:
		return 0, &errs.FieldError{Field: "path", Value: human.Quote(to), Err: errors.New("is the current path")}
	case strings.HasPrefix(to, from+"/"):
		return 0, &errs.FieldError{Field: "path", Value: human.Quote(to), Err: errors.New("is inside the renamed folder")}
	}
	_, err = ns.retry(ctx, func() (Info, error) {
		n, err = ns.rename(ctx, from, to)
		return Info{}, err
	})
	return n, failed(from, err)
}

func (ns *Notes) rename(ctx context.Context, from, to string) (int, error) {
	s, err := ns.load(ctx, from)
	if err != nil {
		return 0, err
	}
	paths := []string{from}
	if !s.exists(ns.now()) {
		if paths, err = ns.pathsIn(ctx, from); err != nil {
			return 0, err
		}
		if len(paths) == 0 {
			return 0, errs.ErrNotFound
		}
	}
	there, err := ns.pathsIn(ctx, to)
	if err == nil && len(there) > 0 {
		err = &errs.FieldError{Field: "path", Value: human.Quote(to), Err: fmt.Errorf("is a folder with %s in it",
			human.Count(len(there), "note", "notes"))}
	}
	if err != nil {
		return 0, err
	}
	var changes []commit.DocumentChange
	size, limit := uint64(0), ns.engine.Log().Limit()
	for _, path := range paths {
		target := to + strings.TrimPrefix(path, from)
		if err := note.CheckPath(target); err != nil {
			return 0, err
		}
		if path != from {
			if s, err = ns.load(ctx, path); err != nil {
				return 0, err
			}
		}
		if s.note.LSN == 0 {
			continue // deleted since
		}
		if size += uint64(len(s.note.Doc)); size <= limit { // else its size is told, and nothing is renamed
			more, err := ns.moved(ctx, path, target, &s)
			if err != nil {
				return 0, err
			}
			changes = append(changes, more...)
		}
	}
	if size > limit {
		return 0, fmt.Errorf("%w: renaming %s in one commit needs %d bytes, but a commit has at most %d (half a "+
			"segment of the log): rename parts of the folder separately", errs.ErrBatchTooLarge,
			human.Count(len(paths), "note", "notes"), size, limit)
	}
	if _, err := ns.commits.ChangeDocuments(ctx, ns.kind, changes); err != nil {
		return 0, err
	}
	return len(paths), nil
}

// moved returns the changes that move a note from path from to path to. s is the state of the note. If a note
// exists at path to, the error is an *errs.ConflictError.
func (ns *Notes) moved(ctx context.Context, from, to string, s *state) ([]commit.DocumentChange, error) {
	there, err := ns.load(ctx, to)
	if err != nil {
		return nil, err
	}
	if there.exists(ns.now()) {
		return nil, &errs.ConflictError{ID: to, Found: there.note.LSN, Remedy: "choose another path, or delete the " +
			"note that has this path"}
	}
	if err := ns.replaceable(to, &there); err != nil {
		return nil, err
	}
	next := s.sidecar.Moved(from, s.note.LSN)
	changes := append(deletions(from, s), commit.DocumentChange{ID: to, Doc: s.note.Doc, Was: there.note,
		Created: s.note.Line.CreatedAt})
	side, err := sidecarChange(to, next, there.side)
	return append(changes, side...), err
}

// pathsIn returns the paths of the notes in a folder, including expired ones.
func (ns *Notes) pathsIn(ctx context.Context, folder string) (paths []string, err error) {
	for path, err := range ns.engine.IDs(ctx, ns.kind, engine.Filters{Prefix: folder + "/"}) {
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}
