package varve

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/wal"
)

// A store's vectors are one model's at any moment: a switch to another is one entry
// of the log (package internal/state). What the model before has made lies in
// documents that are rewritten only behind the switch; meanwhile the vector that
// counts for such a version is the one that was computed for its content, which
// vector_index/reembed has (computed), or none.

// vectorsBy is what makes the store's vectors, as of what is applied.
func (st *Store) vectorsBy() index.Model {
	m := st.state.Model()
	st.settings.AsOf(m.LSN) // who changes the model writes it there too
	return m
}

func (st *Store) switching() bool {
	m := st.vectorsBy()
	return m.Switching()
}

// setModel tells every process what makes the vectors from here on. was is what
// they are thought to be made by; undecided, if it is not 0, is from where on
// nothing may have been committed.
func (st *Store) setModel(ctx context.Context, was index.Model, c state.Change, undecided wal.LSN) error {
	line, err := jsonLine(c)
	if err != nil {
		return err
	}
	value, inflated := st.codec.Encode(nil, &record.Record{Previous: was.LSN, Line: line})
	b := &wal.Batch{
		Entries:       []wal.Entry{{Key: state.ModelKey, Kind: record.KindModel, Value: value, Inflated: inflated}},
		Preconditions: []wal.Precondition{{Key: state.ModelKey, LSN: was.LSN}},
	}
	if undecided != 0 {
		b.Preconditions = append(b.Preconditions, wal.Precondition{LSN: undecided})
	}
	if _, err := st.log.Append(ctx, b); err != nil {
		return err
	}
	return st.sight(ctx)
}

// suits says why what the embedder makes may not be stored now, if so.
func (st *Store) suits(m *index.Model) error {
	name := st.o.EmbedModel
	st.embedding.mu.Lock()
	held := st.embedding.held
	st.embedding.mu.Unlock()
	switch {
	case held || m.Next != "" && m.Next == name:
		return &ModelError{Model: m.Name, Other: name, Next: name}
	case m.Name != "" && name != "" && m.Name != name:
		return &ModelError{Model: m.Name, Other: name, Next: m.Next}
	}
	return nil
}

// nameModel tells every process by which model the store's vectors are, once: what
// config.json says, or the vectors' own files, else this process's. From there on
// those who ask another one are refused.
func (st *Store) nameModel(ctx context.Context) error {
	model := st.vectorsBy()
	if st.o.EmbedModel == "" || model.Name != "" || model.Next != "" {
		return nil
	}
	set, _ := st.loadVectors(nil)
	if set == nil {
		return nil // the next one says it
	}
	name := cmp.Or(st.settings.Now().VectorsModel(), set.Model(), st.o.EmbedModel)
	if err := set.Release(); err != nil {
		return err
	}
	c := changeOfModel(&model)
	c.Name = name
	if err := st.setModel(ctx, model, c, 0); err != nil && !errors.Is(err, errs.ErrConflict) {
		return err
	}
	if err := st.sight(ctx); err != nil {
		return err
	}
	model = st.vectorsBy()
	return st.suits(&model)
}

// hasVectors says whether operations write any.
func hasVectors(ops []op) bool {
	return slices.ContainsFunc(ops, func(o op) bool { return o.memory != nil && len(o.memory.Embedding) > 0 })
}

// renew gives a memory that is about to be written, and has brought the vector of
// an older model along, the one that counts instead, or none. What its version was
// decoded with, or the stored one has, is not what anybody says today.
func (st *Store) renew(ctx context.Context, o *op, model *index.Model) error {
	m := o.memory
	if model.Since == 0 || m == nil || len(m.Embedding) == 0 || o.derived || o.made {
		return nil
	}
	kept := m.Version != 0 && m.Version < model.Since && m.KeepsEmbedding()
	if !kept && (o.id == "" || !model.Switching()) {
		return nil
	}
	var stored *Memory
	old := false
	if o.id != "" {
		v, err := st.load(ctx, st.kinds.memories, o.id)
		if err == nil {
			if d, err := st.decode(o.id, v); err == nil {
				stored, old = &d, model.Older(v.lsn, v.line.VectorNumber())
			}
		} else if cerr := ctx.Err(); cerr != nil {
			return cerr
		}
	}
	if !kept && !(old && slices.Equal(stored.Embedding, m.Embedding)) || !embeddable(m.Content) {
		return nil
	}
	if stored != nil && !old && stored.Content == m.Content {
		setEmbedding(m, stored.Embedding)
		return nil
	}
	v, _, err := st.computedFor(ctx, model, o.id, sha256.Sum256([]byte(m.Content)))
	if err != nil {
		return err
	}
	if len(v) != model.Dimension {
		v = nil
	}
	setEmbedding(m, v)
	o.waits = v == nil
	return nil
}

// olderVector is the vector that counts for a version which Older says has an older
// model's; nil for none.
func (st *Store) olderVector(ctx context.Context, model *index.Model, k *kind, id string, at wal.LSN) ([]float32, error) {
	var found computedVector
	if k == st.kinds.memories {
		c, ok, err := st.computed(ctx, model, id)
		if err != nil {
			return nil, err
		}
		if ok && c.version == at {
			return c.vector, nil
		}
		found = c
	}
	p, err := st.parsedVersion(ctx, k, id, at)
	if err != nil {
		return nil, err
	}
	switch {
	case p.id == "":
		return nil, nil // it is gone, or damaged
	case k == st.kinds.assemblies:
		return st.olderComposite(ctx, model, &p)
	case found.vector != nil && found.sum == sha256.Sum256([]byte(p.content)):
		return found.vector, nil
	case !embeddable(p.content) && len(p.vector) == model.Dimension:
		return p.vector, nil // no model made it
	}
	return nil, nil
}

// parsedVersion reads one version of a document, the zero parsed when it is not to be had.
func (st *Store) parsedVersion(ctx context.Context, k *kind, id string, at wal.LSN) (parsed, error) {
	var doc []byte
	v, view, err := st.frame(ctx, k, id, at)
	switch {
	case err == nil && !v.line.Deleted:
		doc, err = st.codec.Doc(&view, fileLimit)
	case ctx.Err() != nil:
		return parsed{}, ctx.Err()
	default:
		place, ferr := st.state.Find(k.letter, id)
		if ferr != nil || place.Version != at {
			return parsed{}, nil
		}
		if v, err = st.settled(ctx, k, id); err == nil {
			doc = v.doc
		}
	}
	if cerr := ctx.Err(); cerr != nil {
		return parsed{}, cerr
	}
	if err != nil {
		return parsed{}, nil
	}
	p, err := k.parse(doc, id)
	if err != nil {
		return parsed{}, nil
	}
	return p, nil
}

// newestVector is the vector that counts for the newest version of a memory.
func (st *Store) newestVector(ctx context.Context, model *index.Model, id string) (v []float32, older bool, err error) {
	if !model.Switching() {
		return nil, false, nil
	}
	place, err := st.state.Find(record.Memory, id)
	if errors.Is(err, errs.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	number := place.Entry.VectorNumber()
	if place.InLog {
		f, _, err := st.frame(ctx, st.kinds.memories, id, place.Version)
		if err != nil {
			return nil, false, err
		}
		number = f.line.VectorNumber()
	}
	if !model.Older(place.Version, number) {
		return nil, false, nil
	}
	v, err = st.olderVector(ctx, model, st.kinds.memories, id, place.Version)
	return v, true, err
}

// embeddingNow is the embedding that counts for a document as it was read: its own, or
// what stands for an older model's.
func (st *Store) embeddingNow(ctx context.Context, model *index.Model, k *kind, id string, at wal.LSN, own []float32) ([]float32, error) {
	if !model.Switching() {
		return own, nil
	}
	older := at < model.Since
	if !older && len(own) > 0 {
		place, err := st.state.Find(k.letter, id)
		if err != nil || place.Version != at {
			return own, nil
		}
		number := place.Entry.VectorNumber()
		if place.InLog {
			f, _, err := st.frame(ctx, k, id, at)
			if err != nil {
				return own, nil
			}
			number = f.line.VectorNumber()
		}
		older = model.Older(at, number)
	}
	if !older {
		return own, nil
	}
	return st.olderVector(ctx, model, k, id, at)
}

// ErrModel: a vector, or what makes them, is of another model than the store's. See
// ModelError, which names both.
var ErrModel = errors.New("another model")

// ModelError says that a vector, or what makes them, is of another model than the
// store's. It matches ErrModel, and ErrDimension where the dimensions are what tells.
type ModelError struct {
	Model     string // of the store's vectors, "" when nobody said
	Dimension int    // of them, 0: not known, or not what is wrong
	Other     string // what was refused, "" when it does not say
	Got       int    // its dimension
	Next      string // a re-embedding by this model is under way: its vectors serve when all are there
	Since     uint64 // the store has changed to Model at this position, and rewrites its documents
	Query     bool   // it was the vector of a query
	Err       error
}

func (e *ModelError) Error() string {
	have := "the store's vectors"
	if e.Model != "" {
		have += " are by " + quote(e.Model)
	}
	var s string
	switch {
	case e.Dimension != 0:
		s = fmt.Sprintf("%s of %d dimensions, this vector of %d", have, e.Dimension, e.Got)
		if e.Model == "" {
			s = fmt.Sprintf("%s are of %d dimensions, this one of %d", have, e.Dimension, e.Got)
		}
	case e.Query:
		s = fmt.Sprintf("%s, that of the query is by %s", have, quote(e.Other))
	case e.Next != "" && e.Next == e.Other:
		s = have + ", these by " + quote(e.Other)
	default:
		s = fmt.Sprintf("%s, the embedder asks %s", have, quote(e.Other))
	}
	switch {
	case e.Next != "":
		s += fmt.Sprintf(": a re-embedding by %s is under way, and its vectors serve as soon as all of them are there (memctl reindex goes on with it, --cancel calls it off)", quote(e.Next))
	case e.Since != 0:
		s += ": the model was changed, and the last documents are being rewritten (memctl reindex goes on with it)"
	case e.Dimension == 0:
		s += ": ask that one, or change the store's with memctl reindex"
	}
	return s
}

// Is makes the error match ErrModel.
func (e *ModelError) Is(target error) bool { return target == ErrModel }

// Unwrap gives the cause.
func (e *ModelError) Unwrap() error { return e.Err }
