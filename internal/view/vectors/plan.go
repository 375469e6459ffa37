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

// vectorPlan determines which vectors to write into the vector files. If the changes since the existing files are
// known, it uses these changes. Otherwise it compares the files with all documents in the index.
type vectorPlan struct {
	st    *Vectors
	ctx   context.Context
	idx   *index.Set
	set   *vector.Set
	model index.Model
	dim   int // dimension of the vectors to write; vectors of another dimension are omitted
	edits [2][]vector.Edit
	dims  dimensions // dimensions of the vectors seen so far, in index lines, log entries and documents
	line  []byte
}

// collect determines the edits of the vector files. complete means that list has all changes since the existing files
// were written.
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
		// The dimension is not known yet, and that of the existing vectors is right.
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

// kindSection returns the section of the index for the documents whose vectors have kind k.
func kindSection(k vector.Kind) int { return kind.Kinds[k].Section }

// edit returns the edit of the vector files that the change c of a document requires. An edit whose ID is 0 removes
// the document's vector.
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
		return e, fmt.Errorf("the index line of %s is invalid: %w", human.Quote(c.ID), err)
	}
	if e.ID = entry.VectorNumber(); dims != 0 {
		p.dims.add(dims, e.ID, c.Version)
	}
	return e, nil
}

// compare finds the differences between the existing vector files and the index for one kind of vectors. It adds an
// edit for each vector that the files lack, and for each vector that the index does not have. It skips the documents in
// changed.
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
			return fmt.Errorf("the index line of %s is invalid: %w", human.Quote(string(it.Key)), err)
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
		// A VectorID that was kept by a later version may name another vector now.
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

// decide returns the dimension determined by the vectors seen so far, for a store that has no vector files yet. If the
// lines of the index name no dimension, the documents determine it.
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

// sampleSize is the number of documents with a vector that are read to determine the dimension.
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

// vector appends the vector of an edit; vector.List calls it as the source of vectors. It returns false for a
// memory whose vector is unavailable, has another dimension, or is not finite. Such a memory gets no row, and the
// problem is reported elsewhere.
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

// read reads the vector of a version. It reads the version's log entry if the log is certain to have the entry, and
// otherwise the document. If the version is no longer available, read appends nothing.
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
		// Replaced since, edited, damaged or deleted: the log may still have the version.
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

// patchView adds all vectors that the view's files lack to its overlay in memory, for a process that cannot
// write files.
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
