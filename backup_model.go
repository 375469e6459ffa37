package varve

import (
	"context"
	"errors"
	"io/fs"

	"github.com/varve-db/varve/internal/copy"
	"github.com/varve-db/varve/internal/settings"
	"github.com/varve-db/varve/internal/view/vectors"
)

// restoreModel tells a store that is being restored by which model its vectors are, as
// of the moment: its index knows it already, from here on its log and config.json do.
func (st *Store) restoreModel(ctx context.Context, as *copy.Restored) error {
	if err := st.settleRestored(ctx, as); err != nil {
		return err
	}
	model := st.vectors.Model()
	if err := st.embedding.DropOthers(&model); err != nil {
		return err
	}
	if model.LSN == 0 {
		return nil
	}
	if err := st.vectors.SetModel(ctx, model, vectors.ChangeOfModel(&model), 0); err != nil {
		return err
	}
	if !model.Switching() {
		return nil
	}
	// When index and log are lost, this file tells that the documents may be two models', and that
	// there is something to go on with.
	path := st.vectors.ComputedPath(vectors.ComputedName)
	if _, err := st.engine.Env.FS.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	unlock, err := st.embedding.LockComputed() // makes the folder
	if err != nil {
		return err
	}
	c, err := st.vectors.OpenComputed(model.Name, false)
	if err == nil {
		err = c.F.Close()
	}
	return errors.Join(err, unlock())
}

// settleRestored has config.json say what it said at the moment, as far as a change of
// the model behind it has changed that.
func (st *Store) settleRestored(ctx context.Context, as *copy.Restored) error {
	if as.Settled {
		return nil
	}
	c := st.engine.Settings.Now().Clone()
	v := c.VectorSettings()
	switch {
	case as.Model.Since != 0:
		v.Dimension, v.Model = as.Model.Dimension, as.Model.Name
	case v.Dimension == as.Later.Dimension && v.Model == as.Later.Name, v.Model != "" && v.Model != as.Model.Name:
		v.Dimension, v.Model = 0, as.Model.Name // its oldest vector says it again
	default:
		return nil
	}
	return st.embedding.UpdateVectors(ctx, func(now *settings.VectorConfig) { now.Dimension, now.Model = v.Dimension, v.Model })
}
