package mcpserver

import (
	"context"
	"slices"
	"strings"
)

func (s *server) readGraph(ctx context.Context) (*found, error) {
	f := &found{}
	err := s.view.withGraph(ctx, func(g nodes) error {
		if err := g.entities(ctx, f.addEntity); err != nil {
			return err
		}
		return g.relations(ctx, f.addRelation)
	})
	return f.sorted(), err
}

// searchNodes returns the entities that contain the query in their name, type or an observation, ignoring case,
// and the relations that begin or end at one of these entities.
func (s *server) searchNodes(ctx context.Context, query string) (*found, error) {
	query = lower(query)
	has := func(text string) bool { return strings.Contains(lower(text), query) }
	f, names := &found{}, map[string]bool{}
	err := s.view.withGraph(ctx, func(g nodes) error {
		err := g.entities(ctx, func(e *entity) {
			if has(e.Name) || has(e.Type) || slices.ContainsFunc(e.Observations, has) {
				f.addEntity(e)
				names[e.Name] = true
			}
		})
		if err != nil {
			return err
		}
		return g.touching(ctx, names, f.addRelation)
	})
	return f.sorted(), err
}

// openNodes returns the entities with the given names, and the relations that begin or end at one of these entities.
func (s *server) openNodes(ctx context.Context, wanted []string) (*found, error) {
	f, names := &found{}, map[string]bool{}
	err := s.view.withGraph(ctx, func(g nodes) error {
		for _, name := range wanted {
			if names[name] {
				continue
			}
			e, err := g.named(ctx, name)
			if err != nil {
				return err
			}
			if e != nil {
				f.addEntity(e)
				names[name] = true
			}
		}
		return g.touching(ctx, names, f.addRelation)
	})
	return f.sorted(), err
}

func (f *found) sorted() *found {
	sortEntities(f.entities)
	sortRelations(f.relations)
	return f
}
