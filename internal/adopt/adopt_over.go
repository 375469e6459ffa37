package adopt

import (
	"context"
	"time"

	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/wal"
)

// AdoptOver adopts the content doc of a file as a new version of a document, in place of its newest version. newest is
// the position of that version, or 0 if the id has no document.
func (ed *Adopter) AdoptOver(ctx context.Context, held *wal.Held, k *engine.Kind, id string, doc []byte,
	mtime time.Time, newest wal.LSN) (engine.Version, error) {
	p, err := k.Parse(doc, id)
	if err != nil {
		return engine.Version{}, err
	}
	old := engine.Version{LSN: newest}
	if newest != 0 {
		place, err := ed.engine.State().Find(k.Letter, p.ID)
		if err != nil {
			return engine.Version{}, err
		}
		if old.Line = place.Entry; place.InLog {
			if old, _, err = ed.engine.Frame(ctx, k, p.ID, place.Version); err != nil {
				return engine.Version{}, err
			}
		}
		old.LSN = newest
	}
	return ed.Adopt(ctx, held, k, &p, doc, mtime, old)
}
