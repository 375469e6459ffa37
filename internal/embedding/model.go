package embedding

import (
	"cmp"
	"context"
	"errors"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/view/vectors"
)

// Suits says why what the embedder makes may not be stored now, if so.
func (em *Embedding) Suits(m *index.Model) error {
	name := em.Model
	em.mu.Lock()
	held := em.held
	em.mu.Unlock()
	switch {
	case held || m.Next != "" && m.Next == name:
		return &errs.ModelError{Model: m.Name, Other: name, Next: name}
	case m.Name != "" && name != "" && m.Name != name:
		return &errs.ModelError{Model: m.Name, Other: name, Next: m.Next}
	}
	return nil
}

// nameModel tells every process by which model the store's vectors are, once: what
// config.json says, or the vectors' own files, else this process's. From there on
// those who ask another one are refused.
func (em *Embedding) nameModel(ctx context.Context) error {
	model := em.Vectors.Model()
	if em.Model == "" || model.Name != "" || model.Next != "" {
		return nil
	}
	set, _ := em.Vectors.Load(nil)
	if set == nil {
		return nil // the next one says it
	}
	name := cmp.Or(em.Engine.Settings.Now().VectorsModel(), set.Model(), em.Model)
	if err := set.Release(); err != nil {
		return err
	}
	c := vectors.ChangeOfModel(&model)
	c.Name = name
	if err := em.Vectors.SetModel(ctx, model, c, 0); err != nil && !errors.Is(err, errs.ErrConflict) {
		return err
	}
	if err := em.Engine.Sight(ctx); err != nil {
		return err
	}
	model = em.Vectors.Model()
	return em.Suits(&model)
}
