package embedding

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/settings"
	"github.com/varve-db/varve/internal/template"
	"github.com/varve-db/varve/internal/view/vectors"
	"github.com/varve-db/varve/vector"
)

// Suits returns nil if vectors of this embedder may be stored while the store's model is m. Otherwise it returns an
// error with the reason.
func (em *Embedding) Suits(m *index.Model) error {
	name := em.config.Model
	em.mu.Lock()
	held := em.held
	em.mu.Unlock()
	switch {
	case held || m.Next != "" && template.Model(m.Next) == name && template.Model(m.Name) != name:
		return &errs.ModelError{Model: m.Name, Other: name, Next: name}
	case m.Name != "" && name != "" && template.Model(m.Name) != name:
		return &errs.ModelError{Model: m.Name, Other: name, Next: m.Next}
	}
	return nil
}

// nameModel records mk.name in the log as the model of the store's vectors, if the log has no name yet. From then
// on the store refuses vectors of processes with another model.
func (em *Embedding) nameModel(ctx context.Context, mk *maker) error {
	model := em.vectors.Model()
	if em.config.Model == "" || model.Name == mk.name || model.Next != "" || mk.unsure {
		return nil
	}
	if model.Name == "" {
		c := vectors.ChangeOfModel(&model)
		c.Name = mk.name
		if err := em.vectors.SetModel(ctx, model, c, 0); err != nil && !errors.Is(err, errs.ErrConflict) {
			return err
		}
		if err := em.engine.CatchUp(ctx); err != nil {
			return err
		}
		model = em.vectors.Model()
	}
	if err := em.Suits(&model); err != nil {
		return err
	}
	if model.Name != mk.name { // another process was faster, or the template was changed meanwhile
		return &errs.ModelError{Model: model.Name, Other: mk.name, Next: model.Next}
	}
	return nil
}

// maker describes how vectors are made: the name under which the store records their model, and the template into which
// texts are inserted.
type maker struct {
	name     string
	template *template.Template
	unsure   bool // the existing vectors, which may name the model, could not be read
}

// now returns the maker of the store's present vectors. If the store has not named a model yet, now chooses the name;
// nameModel records it later. session reports whether one of the first vectors is for a memory in a session.
func (em *Embedding) now(session bool) *maker {
	model := em.vectors.Model()
	if model.Name != "" || em.config.Model == "" || model.Next != "" {
		return &maker{name: cmp.Or(model.Name, em.config.Model), template: template.Of(model.Name)}
	}
	set, _ := em.vectors.Load(nil)
	if set == nil {
		return &maker{name: em.config.Model, template: template.Of(""), unsure: true}
	}
	has := set.Model()
	if set.Count(vector.Memories) == 0 && template.Model(has) == em.config.Model {
		has = "" // the model has made nothing
	}
	if err := set.Release(); err != nil {
		return &maker{name: em.config.Model, template: template.Of(""), unsure: true}
	}
	c := em.engine.Settings().Now().VectorSettings()
	name := cmp.Or(c.Model, has)
	if name == "" {
		name = template.Join(em.config.Model, first(&c, session))
	}
	return &maker{name: name, template: template.Of(name)}
}

// first returns the template of a store's first vectors. session reports whether one of these vectors is for a memory
// in a session.
func first(c *settings.VectorConfig, session bool) *template.Template {
	t, err := c.Embedded()
	if err != nil || t == nil {
		if t = template.Of(""); session {
			t, _ = template.Parse(template.Turns)
		}
	}
	return t
}

// next returns the maker of the vectors that a re-embedding computes.
func (em *Embedding) next(ctx context.Context) (*maker, error) {
	model := em.vectors.Model()
	c := em.engine.Settings().Now().VectorSettings()
	t, err := c.Embedded()
	switch {
	case err != nil:
		return nil, err
	case em.config.Model == "" && t != nil && t.String() != template.Content:
		return nil, &errs.FieldError{Field: "EmbedModel",
			Err: fmt.Errorf("%w: vectors.template is %s, but the store can record a template only with the name of a "+
				"model: set a name",
				errs.ErrInvalid, human.Quote(c.Template))}
	case em.config.Model == "":
		return &maker{template: template.Of("")}, nil
	case t == nil && cmp.Or(model.Name, c.Model) != "":
		t = template.Of(cmp.Or(model.Name, c.Model))
	case t == nil:
		session, err := em.sessions(ctx)
		if err != nil {
			return nil, err
		}
		t = first(&c, session)
	}
	return &maker{name: template.Join(em.config.Model, t), template: t}, nil
}

// sessions reports whether any memory is in a session.
func (em *Embedding) sessions(ctx context.Context) (bool, error) {
	if err := em.engine.CatchUp(ctx); err != nil {
		return false, err
	}
	for l, err := range em.engine.Lines(ctx, em.engine.Kinds().Memories, engine.Filters{}) {
		switch {
		case err != nil && (l.ID == "" || ctx.Err() != nil):
			return false, err
		case err == nil && l.Line.SessionID != "":
			return true, nil
		}
	}
	return false, nil
}
