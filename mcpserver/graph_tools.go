package mcpserver

import (
	"context"

	"github.com/varve-db/varve/internal/graph"
)

// graphTools returns the tools of the group graph, with the names and texts of the reference server.
func graphTools() []tool {
	entityShape := object(
		needs("name", str("The name of the entity")),
		needs("entityType", str("The type of the entity")),
		needs("observations", array(str("")).described("An array of observation contents associated with the entity")),
	)
	relationShape := object(
		needs("from", str("The name of the entity where the relation starts")),
		needs("to", str("The name of the entity where the relation ends")),
		needs("relationType", str("The type of the relation")),
	)
	entities, relations := object(needs("entities", array(entityShape))), object(needs("relations", array(relationShape)))
	graphShape := object(entities.props[0], relations.props[0])
	outcome := object(needs("success", &shape{kind: "boolean"}), needs("message", str("")))
	return []tool{
		{
			"create_entities", "Create Entities", "Create multiple new entities in the knowledge graph",
			entities, entities, hints{},
			func(ctx context.Context, s *server, a args) (*answer, error) {
				made, err := s.createEntities(ctx, entitiesOf(a))
				return listedAs("entities", func(w *writer) { list(w, made, (*writer).entity) }), err
			},
		},
		{
			"create_relations", "Create Relations",
			"Create multiple new relations between entities in the knowledge graph. Relations should be in active voice",
			relations, relations, hints{},
			func(ctx context.Context, s *server, a args) (*answer, error) {
				made, err := s.createRelations(ctx, relationsOf(a))
				return listedAs("relations", func(w *writer) { list(w, made, (*writer).relation) }), err
			},
		},
		{
			"add_observations", "Add Observations", "Add new observations to existing entities in the knowledge graph",
			object(needs("observations", array(object(
				needs("entityName", str("The name of the entity to add the observations to")),
				needs("contents", array(str("")).described("An array of observation contents to add")),
			)))),
			object(needs("results", array(object(needs("entityName", str("")), needs("addedObservations", array(str(""))))))),
			hints{},
			func(ctx context.Context, s *server, a args) (*answer, error) {
				added, err := s.addObservations(ctx, observationsOf(a, "observations", "contents"))
				return listedAs("results", func(w *writer) { list(w, added, (*writer).added) }), err
			},
		},
		{
			"delete_entities", "Delete Entities",
			"Delete multiple entities and their associated relations from the knowledge graph",
			object(needs("entityNames", array(str("")).described("An array of entity names to delete"))), outcome,
			hints{destructive: true, idempotent: true},
			func(ctx context.Context, s *server, a args) (*answer, error) {
				return done("Entities deleted successfully"), s.deleteEntities(ctx, a.texts("entityNames"))
			},
		},
		{
			"delete_observations", "Delete Observations", "Delete specific observations from entities in the knowledge graph",
			object(needs("deletions", array(object(
				needs("entityName", str("The name of the entity containing the observations")),
				needs("observations", array(str("")).described("An array of observations to delete")),
			)))), outcome,
			hints{destructive: true, idempotent: true},
			func(ctx context.Context, s *server, a args) (*answer, error) {
				return done("Observations deleted successfully"),
					s.deleteObservations(ctx, observationsOf(a, "deletions", "observations"))
			},
		},
		{
			"delete_relations", "Delete Relations", "Delete multiple relations from the knowledge graph",
			object(needs("relations", array(relationShape).described("An array of relations to delete"))), outcome,
			hints{destructive: true, idempotent: true},
			func(ctx context.Context, s *server, a args) (*answer, error) {
				return done("Relations deleted successfully"), s.deleteRelations(ctx, relationsOf(a))
			},
		},
		{
			"read_graph", "Read Graph", "Read the entire knowledge graph",
			object(), graphShape, hints{readOnly: true, idempotent: true},
			func(ctx context.Context, s *server, _ args) (*answer, error) {
				return answerGraph("read_graph")(s.readGraph(ctx))
			},
		},
		{
			"search_nodes", "Search Nodes", "Search for nodes in the knowledge graph based on a query",
			object(needs("query", str("The search query to match against entity names, types, and observation content"))),
			graphShape,
			hints{readOnly: true, idempotent: true},
			func(ctx context.Context, s *server, a args) (*answer, error) {
				return answerGraph("search_nodes")(s.searchNodes(ctx, a.text("query")))
			},
		},
		{
			"open_nodes", "Open Nodes", "Open specific nodes in the knowledge graph by their names",
			object(needs("names", array(str("")).described("An array of entity names to retrieve"))), graphShape,
			hints{readOnly: true, idempotent: true},
			func(ctx context.Context, s *server, a args) (*answer, error) {
				return answerGraph("open_nodes")(s.openNodes(ctx, a.texts("names")))
			},
		},
	}
}

// answerGraph returns a function that converts entities and relations into the answer of a tool.
func answerGraph(tool string) func(*found, error) (*answer, error) {
	return func(f *found, err error) (*answer, error) {
		switch {
		case err != nil:
			return nil, err
		case f.over:
			return nil, tooMuchError(tool)
		}
		return answered(f.write), nil
	}
}

func entitiesOf(a args) []graph.Entity {
	var all []graph.Entity
	for _, o := range a.objects("entities") {
		all = append(all, graph.Entity{Name: o.text("name"), Type: o.text("entityType"),
			Observations: o.texts("observations")})
	}
	return all
}

func relationsOf(a args) []graph.Relation {
	var all []graph.Relation
	for _, o := range a.objects("relations") {
		all = append(all, graph.Relation{From: o.text("from"), To: o.text("to"), Type: o.text("relationType")})
	}
	return all
}

// observations are observations of one entity: those to add or to delete, or those that were added.
type observations struct {
	name  string
	texts []string
}

func observationsOf(a args, list, member string) []observations {
	var all []observations
	for _, o := range a.objects(list) {
		all = append(all, observations{o.text("entityName"), o.texts(member)})
	}
	return all
}

func (w *writer) added(o *observations) {
	w.next()
	w.open('{')
	w.text("entityName", o.name)
	w.texts("addedObservations", o.texts)
	w.close('}')
}
