package notes

import (
	"context"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/commit"
)

// Update replaces the content of the note at path by data, and moves the note to newPath, in one commit. If data
// is nil, the content is not changed. If newPath is "", the note is not moved. The conditions are evaluated
// against the note at path. If that note does not exist, the error is errs.ErrNotFound.
func (ns *Notes) Update(ctx context.Context, path, newPath string, data []byte, c commit.Conditions) (Info, error) {
	if newPath == "" {
		newPath = path
	}
	end, err := ns.using(true, path, newPath)
	if err != nil {
		return Info{}, err
	}
	defer end()
	i, err := ns.retry(ctx, func() (Info, error) {
		s, err := ns.load(ctx, path)
		if err == nil && !s.exists(ns.now()) {
			err = errs.ErrNotFound
		}
		if err == nil {
			err = ns.holds(path, &s, &c)
		}
		if err != nil {
			return Info{}, err
		}
		doc := s.note.Doc
		if data != nil {
			doc = data
		}
		if newPath == path && string(doc) == string(s.note.Doc) {
			return s.info(path), nil
		}
		changes := []commit.DocumentChange{{ID: path, Doc: doc, Was: s.note}}
		if newPath != path {
			if changes, err = ns.moved(ctx, path, newPath, &s); err != nil {
				return Info{}, err
			}
			for i := range changes {
				if changes[i].ID == newPath {
					changes[i].Doc = doc
				}
			}
		}
		versions, err := ns.commits.ChangeDocuments(ctx, ns.kind, changes)
		if err != nil {
			return Info{}, err
		}
		return s.committed(newPath, changes, versions), nil
	})
	return i, failed(path, err)
}
