package varve

import (
	"context"
	"slices"

	"github.com/varve-db/varve/internal/document"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/wal"
)

// olderLook is how many versions back an edited file's vector is looked for.
const olderLook = 100

// withoutOlder gives an edited file of a memory the embedding that the memory has, if
// its own is that of a version from before a change of the model: a checkout, or an
// editor that had the file open, brings it back unmeant, and its updated_at does not
// tell, for a re-embedding leaves that. ok is false where it is to be taken as it is;
// a vector that the log no longer has nobody can tell from a person's. stood is the
// version that the edit replaces.
func (st *Store) withoutOlder(ctx context.Context, k *kind, p *parsed, data []byte, old version) (doc []byte, stood version, ok bool, err error) {
	model := st.vectors.vectorsBy()
	if k != st.engine.kinds.memories || model.Since == 0 || old.lsn < model.Since || len(p.vector) == 0 || model.Older(old.lsn, old.line.VectorNumber()) {
		return nil, stood, false, nil
	}
	if stood, ok = st.engine.fromLog(ctx, k, p.id, old.lsn); !ok {
		return nil, stood, false, nil
	}
	has, err := k.parse(stood.doc, p.id)
	if err != nil || slices.Equal(has.vector, p.vector) || !st.hadBefore(ctx, k, p, old.lsn, model.Since) {
		return nil, stood, false, nil
	}
	m, err := memstore.Decode(data, memstore.DecodeOptions{Limits: document.Stored, Location: st.engine.env.NaiveTimes, ID: p.id})
	if err != nil {
		return nil, stood, false, err
	}
	setEmbedding(m, has.vector)
	doc, err = m.Encode(document.Stored)
	return doc, stood, err == nil, err
}

// hadBefore says that a version below since had the vector, going back from one.
func (st *Store) hadBefore(ctx context.Context, k *kind, p *parsed, at, since wal.LSN) bool {
	for range olderLook {
		v, ok := st.engine.fromLog(ctx, k, p.id, at)
		if !ok {
			return false
		}
		if at < since {
			if had, err := k.parse(v.doc, p.id); err == nil && slices.Equal(had.vector, p.vector) {
				return true
			}
		}
		if at = st.previous(ctx, k, p.id, at); at == 0 {
			return false
		}
	}
	return false
}

// previous is the version that one replaced; 0 where there was none, or nobody can say.
func (st *Store) previous(ctx context.Context, k *kind, id string, at wal.LSN) wal.LSN {
	if _, view, err := st.engine.frame(ctx, k, id, at); err == nil {
		return view.Previous
	}
	e, err := st.engine.log.Past().At(ctx, at, st.engine.log.Durable())
	if err != nil || e.Key != k.Key(id) {
		return 0
	}
	view, err := state.Read(&e)
	if err != nil {
		return 0
	}
	return view.Previous
}
