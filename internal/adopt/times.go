package adopt

import (
	"context"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/engine"
)

// times sets the times of the version that a file becomes, by the rule in the package comment. The file itself
// is not changed. mtime is its modification time.
func (ed *Adopter) times(p *engine.Parsed, old *engine.Version, mtime time.Time) {
	if old.LSN == 0 && !p.Created.IsZero() && !p.Updated.IsZero() {
		return // a new file contains its times
	}
	now := ed.engine.Env().Clock().UTC().Truncate(time.Microsecond)
	if old.LSN != 0 {
		if !old.Line.CreatedAt.IsZero() {
			*p.Created = old.Line.CreatedAt
		}
		*p.Updated = now
		if p.Created.IsZero() {
			*p.Created = now
		}
		return
	}
	if mtime = mtime.UTC().Truncate(time.Microsecond); mtime.After(now) {
		mtime = now // nothing was saved later than it was found
	}
	if p.Created.IsZero() {
		*p.Created = mtime
	}
	if p.Updated.IsZero() {
		*p.Updated = mtime
	}
}

// Newcomer returns the verdict about the bytes of a file that belongs to no version: the file is to be adopted if it is
// a valid document. name is the name of the file; "" if the document may have any name: then id is the document's id.
func (ed *Adopter) Newcomer(ctx context.Context, k *engine.Kind, data []byte, name, id string,
	mtime time.Time) *Verdict {
	v := &Verdict{name: name}
	if name != "" {
		id = k.IDAt(name)
	}
	p, err := k.ParseEdit(data, id)
	if err != nil {
		v.Err = err
		if _, stored := k.Parse(data, id); stored != nil { // else only the current limits refuse it
			v.Err = &errs.CorruptionError{Path: k.Name() + "/" + name, Offset: -1,
				Err: ed.engine.Kinds().Elsewhere(k, data, err)}
		}
		return v
	}
	if v.ID = p.ID; name != "" && k.FileName(p.ID) != name {
		v.Err = &errs.CorruptionError{Path: k.Name() + "/" + name, Offset: -1, Err: k.Misplaced(p.ID)}
		return v
	}
	v.Adopt, v.Err = ed.adoption(ctx, k, &p, data, mtime, engine.Version{})
	return v
}
