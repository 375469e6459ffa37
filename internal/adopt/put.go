package adopt

import (
	"bytes"
	"cmp"
	"context"
	"time"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/internal/view/vectors"
	"github.com/varve-db/varve/wal"
)

// Adoption is a file that a user edited or created, ready to go into the log as a new version.
type Adoption struct {
	commit.Part
	file  []byte          // bytes of the file in the folder
	doc   []byte          // document that is written to the log
	stood *engine.Version // existing version that differs only in the embedding, so that nothing is written; else nil
}

// adoption prepares the bytes of an edited file for the log. p and data are the parsed and the raw content of the
// file. adoption replaces an embedding of an older model; see withoutOlder. old is the version that the file replaces,
// or the zero value for a file that a user created. mtime is the modification time of the file; zero: the version does
// not get the time of the file.
func (ed *Adopter) adoption(ctx context.Context, k *engine.Kind, p *engine.Parsed, data []byte, mtime time.Time,
	old engine.Version) (*Adoption, error) {
	a := &Adoption{file: data, doc: data}
	ed.times(p, &old, mtime)
	doc, stood, renewed, err := ed.withoutOlder(ctx, k, p, data, old)
	if err != nil {
		return nil, err
	}
	if renewed {
		if bytes.Equal(doc, stood.Doc) {
			a.stood = &stood
			return a, nil
		}
		again, err := k.Parse(doc, p.ID)
		if err != nil {
			return nil, err
		}
		*again.Created, *again.Updated = *p.Created, *p.Updated
		p, a.doc = &again, doc
	}
	number, counts, model := int64(0), p.Vector, ed.vectors.Model()
	if k.Vectors && model.Older(old.LSN, old.Line.VectorNumber()) && old.LSN%8 == 0 {
		// Users do not edit the embedding: it stays that of the older model.
		number = int64(old.LSN)
		if counts, _, err = ed.vectors.ComputedFor(ctx, &model, p.ID, vectors.SumOf(&model, p.Memory)); err != nil {
			return nil, err
		}
	}
	line, err := p.Line(a.doc, number)
	if err != nil {
		return nil, err
	}
	if k.FileWins && !mtime.IsZero() {
		line = index.WithMtime(line, mtime.UnixMicro()) // the file stays unchanged, with its time
	}
	previous := old.LSN
	if previous == 0 { // a file that a user created
		previous = ed.engine.State().Deletion(k.Letter, p.ID)
	}
	value, inflated := ed.engine.Codec().Encode(nil,
		&record.Record{Previous: previous, Created: old.LSN == 0, Line: line, Vector: p.Vector, Doc: a.doc})
	a.Part = commit.Part{
		ID: p.ID,
		Entry: wal.Entry{Key: k.Key(p.ID), Kind: record.KindPut, Value: value, Inflated: inflated,
			Cause: wal.CauseEdited},
		Precondition: wal.Precondition{Key: k.Key(p.ID), LSN: old.LSN, Chained: old.LSN == 0, Deletion: previous},
		Model:        wal.Precondition{Key: state.ModelKey, LSN: model.LSN},
		Change:       commit.MemoryChange{Vector: counts},
	}
	return a, nil
}

// Adopt adopts the content of one file as a version of its document, in place of the version old if there is
// one.
func (ed *Adopter) Adopt(ctx context.Context, held *wal.Held, k *engine.Kind, p *engine.Parsed, data []byte,
	mtime time.Time, old engine.Version) (engine.Version, error) {
	a, err := ed.adoption(ctx, k, p, data, mtime, old)
	if err != nil {
		return engine.Version{}, err
	}
	v := &Verdict{ID: p.ID, Adopt: a}
	ed.AdoptAll(ctx, held, k, []*Verdict{v})
	return v.Version, v.Err
}

// AdoptAll adopts the files whose verdicts are to adopt them (Verdict.Adopt), in as few commits as possible. Each file
// has its own result: if another writer wrote the document meanwhile, the result is ErrConflict, and AdoptAll adopts
// the other files.
func (ed *Adopter) AdoptAll(ctx context.Context, held *wal.Held, k *engine.Kind, list []*Verdict) {
	defer ed.place(ctx, k, list)()
	var parts []*commit.Part
	for _, v := range list {
		switch a := v.Adopt; {
		case a == nil:
		case a.stood != nil:
			v.Version = *a.stood
		default:
			parts = append(parts, &a.Part)
		}
	}
	ed.commits.CommitParts(ctx, held, k, parts)
	adopted := 0
	for _, v := range list {
		a := v.Adopt
		if a == nil {
			continue
		}
		if a.stood == nil {
			if v.Err = a.Err; v.Err != nil {
				continue
			}
			adopted++
			ed.engine.Health().Edit()
			ed.engine.Env().Event(env.Event{Kind: env.EventAdopted, ID: v.ID, LSN: a.Entry.LSN, Path: k.File(v.ID)})
			if v.Version, _, v.Err = ed.engine.Frame(ctx, k, v.ID, a.Entry.LSN); v.Err != nil {
				continue
			}
			v.Version.Doc = a.doc
			created := wal.LSN(0)
			if a.Precondition.LSN == 0 {
				created = a.Entry.LSN
			}
			ed.moves.came(k, v.ID, k.FileName(v.ID), a.file, created, ed.engine.Env().Clock())
		}
		v.back = !bytes.Equal(v.Version.Doc, a.file) // its embedding differs from that in the file
	}
}

// place searches for existing documents whose paths exclude the new files in list, for a kind whose documents are in
// folders; see commit.Places. The verdict about an excluded file becomes an error. The caller calls end after the
// commit.
func (ed *Adopter) place(ctx context.Context, k *engine.Kind, list []*Verdict) (end func()) {
	var created []*Verdict
	var ids []string
	for _, v := range list {
		if a := v.Adopt; a != nil && a.stood == nil && a.Precondition.LSN == 0 {
			created, ids = append(created, v), append(ids, v.ID)
		}
	}
	places, fails, err := ed.commits.Places(ctx, k, ids)
	for i, v := range created {
		if v.Adopt.Places = places; err != nil || fails[i] != nil {
			v.Adopt, v.Err = nil, cmp.Or(err, fails[i])
		}
	}
	return places.End
}
