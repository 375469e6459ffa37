package adopt

import (
	"context"
	"slices"

	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/wal"
)

// olderLook is the maximum number of versions of a document in which hadBefore searches for the vector of the edited
// file.
const olderLook = 100

// withoutOlder replaces the embedding in an edited file of a memory, if that embedding is from a version before the
// last change of the embedding model. p and data are the parsed and the raw content of the file. doc is the document
// of the file with the embedding of stood, the version that the edit replaces. A checkout, or an editor that had the
// file open, restores an older embedding unintentionally, and updated_at does not show that, because a re-embedding
// does not change updated_at.
//
// ok is false if the file is to be adopted unchanged. That includes a file whose embedding is in no version that the
// log still has: such an embedding cannot be distinguished from one that a user has set.
func (ed *Adopter) withoutOlder(ctx context.Context, k *engine.Kind, p *engine.Parsed, data []byte,
	old engine.Version) (doc []byte, stood engine.Version, ok bool, err error) {
	model := ed.vectors.Model()
	if k != ed.engine.Kinds().Memories || model.Since == 0 || old.LSN < model.Since || len(p.Vector) == 0 ||
		model.Older(old.LSN, old.Line.VectorNumber()) {
		return nil, stood, false, nil
	}
	if stood, ok = ed.engine.FromLog(ctx, k, p.ID, old.LSN); !ok {
		return nil, stood, false, nil
	}
	has, err := k.Parse(stood.Doc, p.ID)
	if err != nil || slices.Equal(has.Vector, p.Vector) || !ed.hadBefore(ctx, k, p, old.LSN, model.Since) {
		return nil, stood, false, nil
	}
	m, err := memstore.Decode(data,
		memstore.DecodeOptions{Limits: kind.Stored, Location: ed.engine.Env().NaiveTimes, ID: p.ID})
	if err != nil {
		return nil, stood, false, err
	}
	commit.SetEmbedding(m, has.Vector)
	doc, err = m.Encode(kind.Stored)
	return doc, stood, err == nil, err
}

// hadBefore reports whether a version of the document before the position since had the same vector as p. It reads
// the version at position pos and then the versions before that one, newest first, at most olderLook versions in
// all.
func (ed *Adopter) hadBefore(ctx context.Context, k *engine.Kind, p *engine.Parsed, pos, since wal.LSN) bool {
	for range olderLook {
		v, ok := ed.engine.FromLog(ctx, k, p.ID, pos)
		if !ok {
			return false
		}
		if pos < since {
			if had, err := k.Parse(v.Doc, p.ID); err == nil && slices.Equal(had.Vector, p.Vector) {
				return true
			}
		}
		if pos = ed.previous(ctx, k, p.ID, pos); pos == 0 {
			return false
		}
	}
	return false
}

// previous returns the position of the version that was replaced by the version at position pos. It returns 0 if
// the version at pos is the first one, or if the position is unknown.
func (ed *Adopter) previous(ctx context.Context, k *engine.Kind, id string, pos wal.LSN) wal.LSN {
	if _, view, err := ed.engine.Frame(ctx, k, id, pos); err == nil {
		return view.Previous
	}
	e, err := ed.engine.Log().Past().At(ctx, pos, ed.engine.Log().Durable())
	if err != nil || e.Key != k.Key(id) {
		return 0
	}
	view, err := state.Read(&e)
	if err != nil {
		return 0
	}
	return view.Previous
}
