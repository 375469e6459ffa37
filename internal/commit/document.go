package commit

import (
	"context"
	"errors"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/wal"
)

// documentTries is how often a document is written again that another writer wrote meanwhile.
const documentTries = 100

// PutDocument writes a document of a kind that has no rules of its own: no vector, no members, no
// session, no limit on how many there are. id may be "" if the document contains it. PutDocument returns
// the version.
func (cm *Committer) PutDocument(ctx context.Context, k *engine.Kind, id string, doc []byte) (wal.LSN, error) {
	p, err := k.ParseNew(doc, id)
	if err != nil {
		return 0, err
	}
	created, updated := *p.Created, *p.Updated
	return cm.document(ctx, k, p.ID, func(was *engine.Version) (*Part, error) {
		old, previous := was.LSN, was.LSN
		now := cm.engine.Env().Clock().UTC().Truncate(time.Microsecond)
		if *p.Created, *p.Updated = created, updated; old != 0 && !was.Line.CreatedAt.IsZero() {
			p.Date(was.Line.CreatedAt, now)
		}
		p.Date(now, now)
		line, err := p.Line(doc, 0)
		if err != nil {
			return nil, err
		}
		if old == 0 {
			previous = cm.engine.State().Deletion(k.Letter, p.ID)
		}
		value, inflated := cm.engine.Codec().Encode(nil,
			&record.Record{Previous: previous, Created: old == 0, Line: line, Doc: doc})
		return &Part{
			ID:           p.ID,
			Entry:        wal.Entry{Key: k.Key(p.ID), Kind: record.KindPut, Value: value, Inflated: inflated},
			Precondition: wal.Precondition{Key: k.Key(p.ID), LSN: old, Chained: old == 0, Deletion: previous},
		}, nil
	})
}

// DeleteDocument deletes a document of such a kind; errs.ErrNotFound if the id has no document.
func (cm *Committer) DeleteDocument(ctx context.Context, k *engine.Kind, id string) error {
	_, err := cm.document(ctx, k, id, func(was *engine.Version) (*Part, error) {
		old := was.LSN
		if old == 0 {
			return nil, errs.ErrNotFound
		}
		value, _ := cm.engine.Codec().Encode(nil, &record.Record{Previous: old})
		return &Part{
			ID:           id,
			Entry:        wal.Entry{Key: k.Key(id), Kind: record.KindDelete, Delete: true, Value: value},
			Precondition: wal.Precondition{Key: k.Key(id), LSN: old},
		}, nil
	})
	return err
}

// document commits the part that is made of the newest version of a document, whose LSN is 0 if the id has none.
func (cm *Committer) document(ctx context.Context, k *engine.Kind, id string,
	part func(was *engine.Version) (*Part, error)) (wal.LSN, error) {
	for try := 1; ; try++ {
		version, err := cm.documentOnce(ctx, k, id, part)
		if !errors.Is(err, errs.ErrConflict) || try == documentTries {
			return version, cm.engine.Log().Folder().Explain(err)
		}
	}
}

// documentOnce is document, without another try.
func (cm *Committer) documentOnce(ctx context.Context, k *engine.Kind, id string,
	part func(was *engine.Version) (*Part, error)) (wal.LSN, error) {
	old, err := cm.engine.Find(ctx, k, id, false)
	if err != nil && !errors.Is(err, errs.ErrNotFound) {
		return 0, err
	}
	p, err := part(&old)
	if err != nil {
		return 0, err
	}
	if old.LSN == 0 {
		places, fails, err := cm.Places(ctx, k, []string{p.ID})
		if err == nil {
			err = fails[0]
		}
		defer places.End()
		if err != nil {
			return 0, err
		}
		p.Places = places
	}
	err = cm.CommitTogether(ctx, nil, k, []*Part{p})
	return p.Entry.LSN, err
}
