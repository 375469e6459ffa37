package mcpserver

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/graph"
)

// createEntities creates the entities that do not exist, and returns them. Entities with the same
// name in one call become one entity with the observations of all.
func (s *server) createEntities(ctx context.Context, wanted []graph.Entity) (made []graph.Entity, err error) {
	wanted = mergeEntities(wanted)
	l := s.loading(ctx)
	defer l.done()
	err = s.st.Transact(ctx, func(tx *varve.Tx) error {
		made = nil
		at := s.stamp(len(wanted))
		for i := range wanted {
			new, err := create(tx, l.has, wanted[i].Memory(at.Add(time.Duration(i)), nil))
			if err != nil {
				return err
			}
			if new {
				made = append(made, wanted[i])
			}
		}
		return nil
	})
	return made, err
}

func mergeEntities(list []graph.Entity) []graph.Entity {
	at, has := map[string]int{}, map[string]map[string]bool{}
	var merged []graph.Entity
	for _, e := range list {
		i, ok := at[e.Name]
		if !ok {
			at[e.Name] = len(merged)
			merged = append(merged, e)
			continue
		}
		if has[e.Name] == nil {
			has[e.Name] = setOf(merged[i].Observations)
			merged[i].Observations = slices.Clip(merged[i].Observations)
		}
		for _, o := range e.Observations {
			if !has[e.Name][o] {
				has[e.Name][o] = true
				merged[i].Observations = append(merged[i].Observations, o)
			}
		}
	}
	return merged
}

func setOf(list []string) map[string]bool {
	set := make(map[string]bool, len(list))
	for _, s := range list {
		set[s] = true
	}
	return set
}

// create puts the memory m if no memory has the same id, and reports whether it put m. To find this out it calls get,
// which returns nil if a memory with the given id exists, and otherwise the error of tx.Get.
func create(tx *varve.Tx, get func(*varve.Tx, string) error, m varve.Memory) (new bool, err error) {
	if err = get(tx, m.ID); !errors.Is(err, varve.ErrNotFound) {
		return false, err
	}
	_, err = tx.Put(m)
	return true, err
}

// createRelations creates the relations that do not exist, and returns them, each once.
func (s *server) createRelations(ctx context.Context, wanted []graph.Relation) (made []graph.Relation, err error) {
	l := s.loading(ctx)
	defer l.done()
	err = s.st.Transact(ctx, func(tx *varve.Tx) error {
		made = nil
		at := s.stamp(len(wanted))
		for i, r := range wanted {
			new, err := create(tx, l.has, r.Memory(at.Add(time.Duration(i)), nil))
			if err != nil {
				return err
			}
			if new {
				made = append(made, r)
			}
		}
		return nil
	})
	return made, err
}

// addObservations adds observations to entities. It adds to each entity only those that the entity does not have yet,
// and returns the added ones. If one of the entities does not exist, it adds nothing to any entity.
func (s *server) addObservations(ctx context.Context, wanted []observations) (added []observations, err error) {
	l := s.loading(ctx)
	defer l.done()
	err = s.st.Transact(ctx, func(tx *varve.Tx) error {
		added, l.bytes = nil, 0
		for _, w := range wanted {
			var new []string
			there, err := change(tx, l, w.name, func(e *graph.Entity) bool {
				has := setOf(e.Observations)
				for _, o := range w.texts {
					if !has[o] {
						new = append(new, o)
					}
				}
				e.Observations = append(e.Observations, new...)
				return len(new) > 0
			})
			if err != nil {
				return err
			}
			if !there {
				return noEntity(w.name)
			}
			added = append(added, observations{w.name, new})
		}
		return nil
	})
	return added, err
}

// noEntity is the error for a missing entity, in the words of the reference server.
type noEntity string

func (e noEntity) Error() string { return "Entity with name " + string(e) + " not found" }

// change reads the entity with the given name, and calls f. If f returns true, change writes the entity. exists
// reports whether the entity exists.
func change(tx *varve.Tx, l *loading, name string, f func(e *graph.Entity) bool) (exists bool, err error) {
	m, err := l.get(tx, graph.EntityID(name))
	if errors.Is(err, varve.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	e, ok := graph.EntityOf(&m)
	if !ok || !f(&e) {
		return ok, nil
	}
	e.Set(&m)
	_, err = tx.Put(m)
	return true, err
}

// deleteObservations deletes observations, and ignores those that do not exist.
func (s *server) deleteObservations(ctx context.Context, unwanted []observations) error {
	l := s.loading(ctx)
	defer l.done()
	return s.st.Transact(ctx, func(tx *varve.Tx) error {
		l.bytes = 0
		for _, u := range unwanted {
			these := setOf(u.texts)
			_, err := change(tx, l, u.name, func(e *graph.Entity) bool {
				before := len(e.Observations)
				e.Observations = slices.DeleteFunc(e.Observations, func(o string) bool { return these[o] })
				return len(e.Observations) < before
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// deleteEntities deletes entities, and all relations that begin or end at their names, in one commit. It also deletes
// the relations of names for which no entity exists. Afterwards no relation from or to these names exists.
func (s *server) deleteEntities(ctx context.Context, names []string) error {
	if len(names) == 0 {
		return nil
	}
	unwanted := map[string]bool{}
	for _, n := range names {
		unwanted[n] = true
	}
	touching := graph.Touching(names...)
	return s.st.Transact(ctx, func(tx *varve.Tx) error {
		if err := tx.AloneAmong(touching); err != nil {
			return err
		}
		var ids []string
		err := s.view.withGraph(ctx, func(g nodes) error {
			return g.touching(ctx, unwanted, func(r *relation) { ids = append(ids, r.id) })
		})
		if err != nil {
			return err
		}
		for n := range unwanted {
			ids = append(ids, graph.EntityID(n))
		}
		tx.DeleteAll(ids...)
		return nil
	})
}

func (s *server) deleteRelations(ctx context.Context, list []graph.Relation) error {
	if len(list) == 0 {
		return nil
	}
	b := new(varve.Batch)
	seen := map[string]bool{}
	for _, r := range list {
		if id := r.ID(); !seen[id] {
			seen[id] = true
			b.Delete(id)
		}
	}
	return s.st.Apply(ctx, b)
}
