package commit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/wal"
)

// documentTries is the maximum number of attempts to write a document that other writers keep changing.
const documentTries = 100

// PutDocument writes a document of a kind that has no vector, no members, no session, and no limit on the number of
// documents, such as a note. id may be "" if the document contains it. PutDocument returns the version.
func (cm *Committer) PutDocument(ctx context.Context, k *engine.Kind, id string, doc []byte) (wal.LSN, error) {
	p, err := k.ParseNew(doc, id)
	if err != nil {
		return 0, err
	}
	return cm.document(ctx, k, p.ID, func(was *engine.Version) (DocumentChange, error) {
		return DocumentChange{ID: p.ID, Doc: doc, Was: *was}, nil
	})
}

// DeleteDocument deletes a document of a kind that PutDocument can write. If the id has no document, the error is
// errs.ErrNotFound.
func (cm *Committer) DeleteDocument(ctx context.Context, k *engine.Kind, id string) error {
	_, err := cm.document(ctx, k, id, func(was *engine.Version) (DocumentChange, error) {
		if was.LSN == 0 {
			return DocumentChange{}, errs.ErrNotFound
		}
		return DocumentChange{ID: id, Delete: true, Was: *was}, nil
	})
	return err
}

// document commits a change of a document. The function change gets the newest version, whose LSN is 0 if the id has no
// document, and returns the new version. document calls change again if another writer committed a version first.
func (cm *Committer) document(ctx context.Context, k *engine.Kind, id string,
	change func(was *engine.Version) (DocumentChange, error)) (wal.LSN, error) {
	for try := 1; ; try++ {
		old, err := cm.engine.Find(ctx, k, id, false)
		if err != nil && !errors.Is(err, errs.ErrNotFound) {
			return 0, err
		}
		c, err := change(&old)
		if err != nil {
			return 0, err
		}
		versions, err := cm.ChangeDocuments(ctx, k, []DocumentChange{c})
		if err == nil {
			return versions[0], nil
		}
		if !errors.Is(err, errs.ErrConflict) || try == documentTries {
			return 0, err
		}
	}
}

// DocumentChange is a new version, or the deletion, of a document of a kind without rules of its own (see PutDocument).
type DocumentChange struct {
	ID      string
	Doc     []byte
	Delete  bool
	Was     engine.Version // the newest version, which is replaced; the zero value: the document is new
	Created time.Time      // creation time of a document that has no earlier version; zero: now
	Updated time.Time      // time of the update; zero: now. ChangeDocuments sets Created and Updated to what it wrote
	Cause   uint8          // cause of the change, of package wal; 0: a caller requested it
}

// ChangeDocuments writes all changes in one commit, on the condition that the versions that they replace are still the
// newest; otherwise the error matches errs.ErrConflict. Each change is of a different document. ChangeDocuments returns
// the versions that it has written, in the order of changes.
func (cm *Committer) ChangeDocuments(ctx context.Context, k *engine.Kind, changes []DocumentChange) ([]wal.LSN, error) {
	return cm.ChangeDocumentsHeld(ctx, nil, k, changes)
}

// ChangeDocumentsHeld does the same as ChangeDocuments. held is not nil if the caller holds flush.lock: then
// ChangeDocumentsHeld neither waits for the document files to catch up with the log, nor runs a round of the flusher.
func (cm *Committer) ChangeDocumentsHeld(ctx context.Context, held *wal.Held, k *engine.Kind,
	changes []DocumentChange) ([]wal.LSN, error) {
	var parts []*Part
	var created []string
	for i := range changes {
		p, err := cm.documentPart(k, &changes[i])
		if err != nil {
			return nil, err
		}
		if parts = append(parts, p); changes[i].Was.LSN == 0 {
			created = append(created, p.ID)
		}
	}
	if held == nil {
		if err := cm.pace.Pressure(ctx, func() int64 { return int64(framesOf(parts)) }); err != nil {
			return nil, err
		}
	}
	if n, limit := framesOf(parts), cm.engine.Log().Limit(); n > limit && len(parts) > 1 {
		return nil, fmt.Errorf("%w: %d changes take %d bytes of the log, but a commit may take %d (half a segment)",
			errs.ErrBatchTooLarge, len(parts), n, limit)
	}
	places, fails, err := cm.Places(ctx, k, created)
	defer places.End()
	if err = cmp.Or(err, cmp.Or(fails...)); err != nil {
		return nil, err
	}
	for _, p := range parts {
		if p.Precondition.LSN == 0 {
			p.Places = places
		}
	}
	if err := cm.CommitTogether(ctx, held, k, parts); err != nil {
		return nil, cm.engine.Log().Folder().Explain(err)
	}
	cm.engine.Commits().Add(1)
	if held == nil {
		cm.pace.BeatInline()
		cm.pace.RoundInline(ctx)
	}
	versions := make([]wal.LSN, len(parts))
	for i, p := range parts {
		versions[i] = p.Entry.LSN
	}
	return versions, nil
}

// framesOf returns the number of bytes that the entries of some parts take in the log.
func framesOf(parts []*Part) (n uint64) {
	for _, p := range parts {
		n += frames([]wal.Entry{p.Entry})
	}
	return n
}

func (cm *Committer) documentPart(k *engine.Kind, c *DocumentChange) (*Part, error) {
	old, previous := c.Was.LSN, c.Was.LSN
	if c.Delete {
		value, _ := cm.engine.Codec().Encode(nil, &record.Record{Previous: old})
		return &Part{
			ID: c.ID,
			Entry: wal.Entry{Key: k.Key(c.ID), Kind: record.KindDelete, Delete: true, Value: value,
				Cause: c.Cause},
			Precondition: wal.Precondition{Key: k.Key(c.ID), LSN: old},
		}, nil
	}
	p, err := k.ParseEdit(c.Doc, c.ID)
	if err != nil {
		return nil, err
	}
	now := cm.engine.Env().Clock().UTC().Truncate(time.Microsecond)
	updated := now
	if !c.Updated.IsZero() {
		updated = c.Updated.UTC().Truncate(time.Microsecond)
	}
	if old != 0 && !c.Was.Line.CreatedAt.IsZero() {
		p.Date(c.Was.Line.CreatedAt, updated)
	} else if !c.Created.IsZero() {
		p.Date(c.Created, updated)
	}
	p.Date(now, updated)
	c.Created, c.Updated = *p.Created, *p.Updated
	line, err := p.Line(c.Doc, 0)
	if err != nil {
		return nil, err
	}
	if old == 0 {
		previous = cm.engine.State().Deletion(k.Letter, p.ID)
	}
	value, inflated := cm.engine.Codec().Encode(nil,
		&record.Record{Previous: previous, Created: old == 0, Line: line, Doc: c.Doc})
	return &Part{
		ID: p.ID,
		Entry: wal.Entry{Key: k.Key(p.ID), Kind: record.KindPut, Value: value, Inflated: inflated,
			Cause: c.Cause},
		Precondition: wal.Precondition{Key: k.Key(p.ID), LSN: old, Chained: old == 0, Deletion: previous},
	}, nil
}
