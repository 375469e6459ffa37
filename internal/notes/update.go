package notes

import (
	"context"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/commit"
)

// Update replaces the content of a note and moves the note to another path, in one commit. If the content is nil, it is
// not changed; if the path is "", the note is not moved. The conditions are evaluated against the note at the old path.
// If that note does not exist, the error is errs.ErrNotFound.
func (ns *Notes) Update(ctx context.Context, path, to string, data []byte, c commit.Conditions) (Info, error) {
	if to == "" {
		to = path
	}
	end, err := ns.using(true, path, to)
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
		if to == path && string(doc) == string(s.note.Doc) {
			return s.info(path), nil
		}
		changes := []commit.DocumentChange{{ID: path, Doc: doc, Was: s.note}}
		if to != path {
			if changes, err = ns.moved(ctx, path, to, &s); err != nil {
				return Info{}, err
			}
			for i := range changes {
				if changes[i].ID == to {
					changes[i].Doc = doc
				}
			}
		}
		versions, err := ns.commits.ChangeDocuments(ctx, ns.kind, changes)
		if err != nil {
			return Info{}, err
		}
		return s.committed(to, changes, versions), nil
	})
	return i, failed(path, err)
}
