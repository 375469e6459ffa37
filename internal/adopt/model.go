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

// olderLook is how many versions back an edited file's vector is looked for.
const olderLook = 100

// withoutOlder gives an edited file of a memory the embedding that the memory has, if
// its own is that of a version from before a change of the model: a checkout, or an
// editor that had the file open, brings it back unmeant, and its updated_at does not
// tell, for a re-embedding leaves that. ok is false where it is to be taken as it is; a vector that
// the log no longer has cannot be told from a person's. stood is the version that the edit
// replaces.
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

// hadBefore reports whether a version below since had the vector, going back from one.
func (ed *Adopter) hadBefore(ctx context.Context, k *engine.Kind, p *engine.Parsed, at, since wal.LSN) bool {
	for range olderLook {
		v, ok := ed.engine.FromLog(ctx, k, p.ID, at)
		if !ok {
			return false
		}
		if at < since {
			if had, err := k.Parse(v.Doc, p.ID); err == nil && slices.Equal(had.Vector, p.Vector) {
				return true
			}
		}
		if at = ed.previous(ctx, k, p.ID, at); at == 0 {
			return false
		}
	}
	return false
}

// previous is the version that one replaced; 0 where there was none, or nobody can say.
func (ed *Adopter) previous(ctx context.Context, k *engine.Kind, id string, at wal.LSN) wal.LSN {
	if _, view, err := ed.engine.Frame(ctx, k, id, at); err == nil {
		return view.Previous
	}
	e, err := ed.engine.Log().Past().At(ctx, at, ed.engine.Log().Durable())
	if err != nil || e.Key != k.Key(id) {
		return 0
	}
	view, err := state.Read(&e)
	if err != nil {
		return 0
	}
	return view.Previous
}
