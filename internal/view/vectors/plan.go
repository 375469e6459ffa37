package vectors

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/vector"
	"github.com/varve-db/varve/wal"
)

// vectorPlan finds out what vectors have to be written: from what changed, or, where it is unknown
// what the existing ones lack, by comparing all.
type vectorPlan struct {
	st    *Vectors
	ctx   context.Context
	idx   *index.Set
	set   *vector.Set
	model index.Model
	dim   int // of those to write; others are left out
	edits [2][]vector.Edit
	dims  dimensions // of the lines that were looked at
	line  []byte
}

// collect fills edits. complete says that set lacks nothing but list.
func (p *vectorPlan) collect(list []index.Change, complete bool) error {
	p.dims = dimensions{}
	var changed [2]map[string]bool
	if !complete {
		changed = [2]map[string]bool{{}, {}}
	}
	var edits [2][]vector.Edit
	for i := range list {
		of := kind.In(list[i].Section)
		if of == nil || !of.Vectors {
			continue
		}
		kind := of.VectorKind()
		e, err := p.edit(&list[i])
		if err != nil {
			return err
		}
		if !complete {
			changed[kind][e.Key] = true
		}
		if e.ID != 0 || p.set.Exists() {
			edits[kind] = append(edits[kind], e)
		}
	}
	for kind := range edits {
		var err error
		// The dimension is not known yet, and what stands has the right one.
		if p.dim = p.set.Dim(); p.set.Exists() {
			edits[kind], err = p.set.Changes(vector.Kind(kind), edits[kind], p.vector)
		}
		if err != nil {
			return err
		}
		p.edits[kind] = edits[kind]
		if complete {
			continue
		}
		if err := p.compare(vector.Kind(kind), changed[kind]); err != nil {
			return err
		}
	}
	return nil
}

// kindSection is the section of the index with the documents that have vectors of a kind.
func kindSection(of vector.Kind) int { return kind.Kinds[of].Section }

// edit is what a change means for the vectors.
func (p *vectorPlan) edit(c *index.Change) (vector.Edit, error) {
	e := vector.Edit{Key: c.ID, Handle: c.Version}
	if c.Deleted || lineDimension(c.Finished) == 0 && !p.model.Older(c.Version, 0) {
		return e, nil
	}
	line, dims := c.Finished, lineDimension(c.Finished)
	if line == nil || dims == index.UnknownDimension {
		entry, err := p.st.engine.Log().ReadAt(p.ctx, c.Version)
		if err != nil {
			return e, err
		}
		v, err := vectorOf(&entry, nil)
		if err != nil {
			return e, err
		}
		if dims = len(v); dims == 0 && !p.model.Older(c.Version, 0) {
			return e, nil
		}
		if p.line, err = engine.FinishedLine(p.line[:0], &entry); err != nil {
			return e, err
		}
		line = p.line
	}
	entry, err := index.ParseLine(line)
	if err != nil {
		return e, fmt.Errorf("the line of %s: %w", human.Quote(c.ID), err)
	}
	if e.ID = entry.VectorNumber(); dims != 0 {
		p.dims.add(dims, e.ID, c.Version)
	}
	return e, nil
}

// compare adds what the standing vectors lack of the index, and have too much.
func (p *vectorPlan) compare(kind vector.Kind, changed map[string]bool) error {
	add := func(e vector.Edit) { p.edits[kind] = append(p.edits[kind], e) }
	for it, err := range p.idx.Range(kindSection(kind), index.Span{}) {
		if err == nil {
			err = p.ctx.Err()
		}
		if err != nil {
			return err
		}
		dims := lineDimension(it.Value)
		if dims == 0 && !p.model.Switching() || changed[string(it.Key)] {
			continue
		}
		line, err := index.ParseLine(it.Value)
		if err != nil {
			return fmt.Errorf("the line of %s: %w", human.Quote(string(it.Key)), err)
		}
		e := vector.Edit{Key: string(it.Key), ID: line.VectorNumber(), Handle: line.Version}
		if dims != 0 {
			p.dims.add(dims, e.ID, line.Version)
		} else if !p.model.Older(line.Version, 0) {
			continue
		}
		has, err := p.set.ID(kind, e.Key)
		if err != nil {
			return err
		}
		// A number that was brought along may name another vector than it did.
		if has == e.ID && (line.VectorID == 0 || line.Version < p.set.LSN()) {
			continue
		}
		add(e)
	}
	return p.set.Walk(kind, func(key string, _ int64) error {
		if changed[key] {
			return p.ctx.Err()
		}
		var ok bool
		var err error
		if p.line, ok, err = p.idx.Get(p.line[:0], kindSection(kind), key); err != nil {
			return err
		}
		if ok && lineDimension(p.line) == 0 && p.model.Switching() {
			line, err := index.ParseLine(p.line)
			if err != nil || p.model.Older(line.Version, 0) {
				return err
			}
		}
		if !ok || lineDimension(p.line) == 0 {
			add(vector.Edit{Key: key})
		}
		return p.ctx.Err()
	})
}

// decide is the dimension that the vectors met so far have given the store, where
// none has been written yet. Of lines that name none the documents decide.
func (p *vectorPlan) decide() (int, error) {
	_, unknown := p.dims[index.UnknownDimension]
	delete(p.dims, index.UnknownDimension)
	if len(p.dims) == 0 && unknown {
		if err := p.sample(); err != nil {
			return 0, err
		}
	}
	return p.dims.decided(), nil
}

// sampleSize is how many documents with a vector decide about the dimension, if
// need be.
const sampleSize = 1000

func (p *vectorPlan) sample() error {
	for kind := range p.edits {
		left := sampleSize
		for _, e := range p.edits[kind] {
			v, err := p.read(nil, vector.Kind(kind), e)
			if err != nil {
				return err
			}
			if len(v) == 0 {
				continue
			}
			p.dims.add(len(v), 0, e.Handle)
			if left--; left == 0 {
				break
			}
		}
	}
	return nil
}

// vector is vector.Plan.Vector. Of a memory whose vector is not to be had, or has
// another dimension, the store is told elsewhere; it has no row.
func (p *vectorPlan) vector(dst []float32, kind vector.Kind, e vector.Edit) ([]float32, bool, error) {
	if err := p.ctx.Err(); err != nil {
		return dst, false, err
	}
	v, err := p.read(dst, kind, e)
	if err != nil {
		return dst, false, err
	}
	return v, len(v) == p.dim && len(v) > 0 && vector.CheckFinite("embedding", v) == nil, nil
}

// read reads the vector of a version: in its frame while the log must have it,
// else in the document. None, where it is nowhere any more.
func (p *vectorPlan) read(dst []float32, kind vector.Kind, e vector.Edit) ([]float32, error) {
	if p.model.Older(e.Handle, e.ID) {
		v, err := p.st.olderVector(p.ctx, &p.model, p.st.engine.Kinds().In(kindSection(kind)), e.Key, e.Handle)
		return append(dst, v...), err
	}
	if e.Handle >= p.idx.LSN() {
		entry, err := p.st.engine.Log().ReadAt(p.ctx, e.Handle)
		if err != nil {
			return dst, err
		}
		return vectorOf(&entry, dst)
	}
	k := p.st.engine.Kinds().In(kindSection(kind))
	line, ok, err := p.idx.Get(p.line[:0], kindSection(kind), e.Key)
	p.line = line[:0]
	if err != nil || !ok {
		return dst, err
	}
	want, err := index.ParseLine(line)
	if err != nil {
		return dst, err
	}
	data, _, err := k.Read(k.FileName(e.Key), places.StoredMost)
	switch {
	case err == nil && sha256.Sum256(data) == want.ContentHash:
	case err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errs.ErrCorrupt) && !engine.NotOurs(err):
		return dst, err
	default:
		// Replaced since, edited, damaged or gone: the log may have it still.
		v, ok := p.st.engine.FromLog(p.ctx, k, e.Key, wal.LSN(e.Handle))
		if !ok {
			return dst, nil
		}
		data = v.Doc
	}
	doc, err := k.Parse(data, e.Key)
	if err != nil {
		return dst, nil
	}
	return append(dst, doc.Vector...), nil
}

// patchView tells a view of all that its set lacks, where nothing may be written.
func (vs *Vectors) patchView(ctx context.Context, view *vector.View, idx *index.Set, model *index.Model) error {
	p := &vectorPlan{st: vs, ctx: ctx, idx: idx, set: view.Set(), model: *model, dims: dimensions{}}
	for kind := range p.edits {
		if err := p.compare(vector.Kind(kind), nil); err != nil {
			return err
		}
	}
	if p.dim = view.Dim(); p.dim == 0 {
		var err error
		if p.dim, err = p.decide(); err != nil {
			return err
		}
	}
	for kind, edits := range p.edits {
		for _, e := range edits {
			if e.ID == 0 {
				if err := view.Delete(vector.Kind(kind), e.Key); err != nil {
					return err
				}
				continue
			}
			v, ok, err := p.vector(nil, vector.Kind(kind), e)
			if err != nil {
				return err
			}
			if ok {
				err = view.Put(vector.Kind(kind), e.Key, e.ID, v)
			} else {
				err = view.Delete(vector.Kind(kind), e.Key)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
