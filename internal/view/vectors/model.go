package vectors

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/internal/template"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/wal"
)

// At any moment a store's vectors belong to one model. A switch to another model is one entry of the log (package
// internal/state). Embeddings by the previous model are in documents that are rewritten only after the switch. Until a
// document is rewritten, its vector is the one computed for its content, in vector_index/reembed (see computed), or
// none.

// Model returns the model of the store's vectors after all log entries that were applied.
func (vs *Vectors) Model() index.Model {
	m := vs.engine.State().Model()
	vs.engine.Settings().AsOf(m.LSN) // a change of the model changes config.json too
	return m
}

// SetModel commits the change c of the store's embedding model. prev is the model as the caller read it; SetModel
// fails if the store's model has changed since then. If undecided is not 0, SetModel also fails if there is a
// commit at or after the log position undecided.
func (vs *Vectors) SetModel(ctx context.Context, prev index.Model, c state.Change, undecided wal.LSN) error {
	line, err := jsonLine(c)
	if err != nil {
		return err
	}
	value, inflated := vs.engine.Codec().Encode(nil, &record.Record{Previous: prev.LSN, Line: line})
	b := &wal.Batch{
		Entries:       []wal.Entry{{Key: state.ModelKey, Kind: record.KindModel, Value: value, Inflated: inflated}},
		Preconditions: []wal.Precondition{{Key: state.ModelKey, LSN: prev.LSN}},
	}
	if undecided != 0 {
		b.Preconditions = append(b.Preconditions, wal.Precondition{LSN: undecided})
	}
	if _, err := vs.engine.Append(ctx, b); err != nil {
		return err
	}
	return vs.engine.CatchUp(ctx)
}

// olderVector returns the vector to use for the version of a document at log position pos, whose embedding is by a
// previous model (see index.Model.Older). It returns nil if there is no such vector.
func (vs *Vectors) olderVector(ctx context.Context, model *index.Model, k *engine.Kind, id string,
	pos wal.LSN) ([]float32, error) {
	var found ComputedVector
	if k == vs.engine.Kinds().Memories {
		c, ok, err := vs.computed(ctx, model, id)
		if err != nil {
			return nil, err
		}
		if ok && c.Version == pos {
			return c.Vector, nil
		}
		found = c
	}
	p, err := vs.parsedVersion(ctx, k, id, pos)
	if err != nil {
		return nil, err
	}
	switch {
	case p.ID == "":
		return nil, nil // deleted or damaged
	case k == vs.engine.Kinds().Assemblies:
		return vs.host.OlderComposite(ctx, model, &p)
	case found.Vector != nil && found.Sum == SumOf(model, p.Memory):
		return found.Vector, nil
	case !Embeddable(p.Memory.Content) && len(p.Vector) == model.Dimension:
		return p.Vector, nil // such a vector is made by no model
	}
	return nil, nil
}

// parsedVersion reads the version of a document at log position pos. It returns a zero Parsed if the version is
// not available.
func (vs *Vectors) parsedVersion(ctx context.Context, k *engine.Kind, id string, pos wal.LSN) (engine.Parsed, error) {
	var doc []byte
	v, view, err := vs.engine.Frame(ctx, k, id, pos)
	switch {
	case err == nil && !v.Line.Deleted:
		doc, err = vs.engine.Codec().Doc(&view, places.StoredMost)
	case ctx.Err() != nil:
		return engine.Parsed{}, ctx.Err()
	default:
		place, ferr := vs.engine.State().Find(k.Letter, id)
		if ferr != nil || place.Version != pos {
			return engine.Parsed{}, nil
		}
		if v, err = vs.engine.Settled(ctx, k, id); err == nil {
			doc = v.Doc
		}
	}
	if cerr := ctx.Err(); cerr != nil {
		return engine.Parsed{}, cerr
	}
	if err != nil {
		return engine.Parsed{}, nil
	}
	p, err := k.Parse(doc, id)
	if err != nil {
		return engine.Parsed{}, nil
	}
	return p, nil
}

// NewestVector returns the vector that replaces the embedding in the newest version of a memory, if a switch of the
// model is in progress and that embedding is by the previous model. older reports whether the embedding is by the
// previous model; v is nil if there is no vector that replaces it. In all other cases NewestVector returns nil and
// false.
func (vs *Vectors) NewestVector(ctx context.Context, model *index.Model,
	id string) (v []float32, older bool, err error) {
	if !model.Switching() {
		return nil, false, nil
	}
	place, err := vs.engine.State().Find(kind.Memories.Letter, id)
	if errors.Is(err, errs.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	number := place.Entry.VectorNumber()
	if place.InLog {
		f, _, err := vs.engine.Frame(ctx, vs.engine.Kinds().Memories, id, place.Version)
		if err != nil {
			return nil, false, err
		}
		number = f.Line.VectorNumber()
	}
	if !model.Older(place.Version, number) {
		return nil, false, nil
	}
	v, err = vs.olderVector(ctx, model, vs.engine.Kinds().Memories, id, place.Version)
	return v, true, err
}

// EmbeddingNow returns the embedding to use for the version of a document at log position pos. stored is the
// embedding that the version contains. If stored is by a previous model, EmbeddingNow returns the vector that
// replaces stored, or nil if no vector does. Otherwise it returns stored.
func (vs *Vectors) EmbeddingNow(ctx context.Context, model *index.Model, k *engine.Kind, id string, pos wal.LSN,
	stored []float32) ([]float32, error) {
	if !model.Switching() {
		return stored, nil
	}
	older := pos < model.Since
	if !older && len(stored) > 0 {
		place, err := vs.engine.State().Find(k.Letter, id)
		if err != nil || place.Version != pos {
			return stored, nil
		}
		number := place.Entry.VectorNumber()
		if place.InLog {
			f, _, err := vs.engine.Frame(ctx, k, id, pos)
			if err != nil {
				return stored, nil
			}
			number = f.Line.VectorNumber()
		}
		older = model.Older(pos, number)
	}
	if !older {
		return stored, nil
	}
	return vs.olderVector(ctx, model, k, id, pos)
}

// ChangeOfModel returns a change of the embedding model that keeps all its settings, for the caller to modify.
func ChangeOfModel(m *index.Model) state.Change {
	return state.Change{Name: m.Name, Dimension: m.Dimension, Since: m.Since, Done: m.Done, Next: m.Next}
}

func jsonLine(v any) ([]byte, error) { return json.Marshal(v) }

// SumOf returns the hash of the part of the embedded text that comes from the memory m itself (see Template.Own). If m
// is nil, it returns the hash of an empty text.
func SumOf(model *index.Model, m *memstore.Memory) [32]byte {
	if m == nil {
		return sha256.Sum256(nil)
	}
	return sha256.Sum256([]byte(template.Of(model.Name).Own(m)))
}

// Embeddable reports whether a memory's content has text that can be embedded.
func Embeddable(content string) bool { return strings.TrimSpace(content) != "" }
