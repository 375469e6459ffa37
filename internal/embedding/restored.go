package embedding

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/view/vectors"
)

// DropOthers drops, of a store that is being restored, what a re-embedding has computed that was not
// under way at the moment, but when the backup ended: nothing would continue it, and after a loss of
// log and index it would be taken for one.
func (em *Embedding) DropOthers(model *index.Model) error {
	path := em.Vectors.ComputedPath(vectors.ComputedName)
	f, err := em.Engine.Env.FS.OpenFile(path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return em.Engine.Env.IOError("opening", path, err)
	}
	var head vectors.ComputedHeader
	c := &vectors.Computed{F: f}
	_, err = c.Records(math.MaxInt64, func(payload []byte) error {
		if json.Unmarshal(payload, &head) != nil {
			head = vectors.ComputedHeader{}
		}
		return vectors.ErrComputed // no more of it
	})
	if errors.Is(err, vectors.ErrComputed) {
		err = nil
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return em.Engine.Env.IOError("reading", path, err)
	}
	if head.Under(model) {
		return nil
	}
	return em.Vectors.DropComputed()
}
