package embedding

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/copy/backup"
	"github.com/varve-db/varve/internal/settings"
	"github.com/varve-db/varve/internal/view/vectors"
)

// dropOthers removes the file of computed vectors from a store that is being restored, if the re-embedding that
// computed them began only after the restored position. Nothing would continue that re-embedding. If log and index were
// lost later, the file would be treated as evidence of a running re-embedding.
func (em *Embedding) dropOthers(model *index.Model) error {
	path := em.vectors.ComputedPath(vectors.ComputedName)
	f, err := em.engine.Env().FS.OpenFile(path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return em.engine.Env().IOError("opening", path, err)
	}
	var head vectors.ComputedHeader
	c := &vectors.Computed{F: f}
	_, err = c.Records(math.MaxInt64, func(payload []byte) error {
		if json.Unmarshal(payload, &head) != nil {
			head = vectors.ComputedHeader{}
		}
		return vectors.ErrComputed // only the first record is needed
	})
	if errors.Is(err, vectors.ErrComputed) {
		err = nil
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return em.engine.Env().IOError("reading", path, err)
	}
	if head.Under(model) {
		return nil
	}
	return em.vectors.DropComputed()
}

// Restore records the embedding model of the restored position in the log and in config.json of a store that is
// being restored. restored describes the vectors of that store. The index already has this model.
func (em *Embedding) Restore(ctx context.Context, restored *backup.Restored) error {
	if err := em.settleRestored(ctx, restored); err != nil {
		return err
	}
	model := em.vectors.Model()
	if err := em.dropOthers(&model); err != nil {
		return err
	}
	if model.LSN == 0 {
		return nil
	}
	if err := em.vectors.SetModel(ctx, model, vectors.ChangeOfModel(&model), 0); err != nil {
		return err
	}
	if !model.Switching() {
		return nil
	}
	// If index and log are lost, this file shows that the documents may have vectors of two models, and that there is a
	// re-embedding to continue.
	path := em.vectors.ComputedPath(vectors.ComputedName)
	if _, err := em.engine.Env().FS.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	unlock, err := em.LockComputed() // creates the folder
	if err != nil {
		return err
	}
	c, err := em.vectors.OpenComputed(model.Name, false)
	if err == nil {
		err = c.F.Close()
	}
	return errors.Join(err, unlock())
}

// settleRestored sets the vector settings in config.json to their values at the restored position, if the model
// was changed after that position and the change also changed the settings.
func (em *Embedding) settleRestored(ctx context.Context, restored *backup.Restored) error {
	if restored.Settled {
		return nil
	}
	c := em.engine.Settings().Now().Clone()
	v := c.VectorSettings()
	switch {
	case restored.Model.Since != 0:
		v.Dimension, v.Model = restored.Model.Dimension, restored.Model.Name
	case v.Dimension == restored.Later.Dimension && v.Model == restored.Later.Name,
		v.Model != "" && v.Model != restored.Model.Name:
		v.Dimension, v.Model = 0, restored.Model.Name // the oldest vector determines the dimension again
	default:
		return nil
	}
	return em.UpdateVectors(ctx, func(now *settings.VectorConfig) { now.Dimension, now.Model = v.Dimension, v.Model })
}
