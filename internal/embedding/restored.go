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

// dropOthers drops, of a store that is being restored, what a re-embedding has computed that was not
// under way at the moment, but when the backup ended: nothing would continue it, and after a loss of
// log and index it would be taken for one.
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
		return vectors.ErrComputed // no more of it
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

// Restore tells a store that is being restored by which model its vectors are, as
// of the moment: its index knows it already, from here on its log and config.json do.
func (em *Embedding) Restore(ctx context.Context, as *backup.Restored) error {
	if err := em.settleRestored(ctx, as); err != nil {
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
	// When index and log are lost, this file tells that the documents may be two models', and that
	// there is something to go on with.
	path := em.vectors.ComputedPath(vectors.ComputedName)
	if _, err := em.engine.Env().FS.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	unlock, err := em.LockComputed() // makes the folder
	if err != nil {
		return err
	}
	c, err := em.vectors.OpenComputed(model.Name, false)
	if err == nil {
		err = c.F.Close()
	}
	return errors.Join(err, unlock())
}

// settleRestored has config.json say what it said at the moment, as far as a change of
// the model behind it has changed that.
func (em *Embedding) settleRestored(ctx context.Context, as *backup.Restored) error {
	if as.Settled {
		return nil
	}
	c := em.engine.Settings().Now().Clone()
	v := c.VectorSettings()
	switch {
	case as.Model.Since != 0:
		v.Dimension, v.Model = as.Model.Dimension, as.Model.Name
	case v.Dimension == as.Later.Dimension && v.Model == as.Later.Name, v.Model != "" && v.Model != as.Model.Name:
		v.Dimension, v.Model = 0, as.Model.Name // its oldest vector says it again
	default:
		return nil
	}
	return em.UpdateVectors(ctx, func(now *settings.VectorConfig) { now.Dimension, now.Model = v.Dimension, v.Model })
}
