package purge

import (
	"fmt"

	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/view/vectors"
	"github.com/varve-db/varve/vector"
)

// purgedVectors adds an error to r.Left if the vector files still have a vector of one of the documents, or if this
// cannot be determined. The vectors were rewritten before; a vector that is left means that this failed. The error
// that purgedVectors returns means that no vector file can be loaded.
func (p *Purger) purgedVectors(k *engine.Kind, ids []string, r *Report) error {
	set, why := p.vectors.Load(nil)
	if set == nil {
		return why
	}
	defer func() { _ = set.Release() }()
	if of, ok := vectors.KindOf(k.Letter); ok && why == nil {
		for _, id := range ids {
			n, err := set.ID(of, id)
			if err != nil {
				why = err
				break
			}
			if n != 0 {
				why = fmt.Errorf("vector %d of %s still exists", n, human.Quote(id))
				break
			}
		}
	}
	if why != nil {
		r.Left = append(r.Left,
			fmt.Errorf("%s may contain vectors of purged documents: run memctl repair --apply, then purge again: %w",
				vector.Folder, why))
	}
	return nil
}
