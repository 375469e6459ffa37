package varve

import (
	"cmp"
	"context"
	"errors"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/internal/view/vectors"
)

// suits says why what the embedder makes may not be stored now, if so.
func (st *Store) suits(m *index.Model) error {
	name := st.o.EmbedModel
	st.embedding.mu.Lock()
	held := st.embedding.held
	st.embedding.mu.Unlock()
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
func (st *Store) nameModel(ctx context.Context) error {
	model := st.vectors.Model()
	if st.o.EmbedModel == "" || model.Name != "" || model.Next != "" {
		return nil
	}
	set, _ := st.vectors.Load(nil)
	if set == nil {
		return nil // the next one says it
	}
	name := cmp.Or(st.engine.Settings.Now().VectorsModel(), set.Model(), st.o.EmbedModel)
	if err := set.Release(); err != nil {
		return err
	}
	c := vectors.ChangeOfModel(&model)
	c.Name = name
	if err := st.vectors.SetModel(ctx, model, c, 0); err != nil && !errors.Is(err, errs.ErrConflict) {
		return err
	}
	if err := st.engine.Sight(ctx); err != nil {
		return err
	}
	model = st.vectors.Model()
	return st.suits(&model)
}
