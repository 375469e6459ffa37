package graph

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/varve-db/varve/memstore"
)

// The categories of the memories of a graph.
const (
	EntityCategory   = "entity"
	RelationCategory = "relation"
)

// Entity is a node of the graph.
type Entity struct {
	Name         string
	Type         string
	Observations []string
}

// Relation is a directed edge between the names of two entities. The entities need not exist.
type Relation struct {
	From, To, Type string
}

// The members of metadata.
const (
	memberType         = "entityType"
	memberObservations = "observations"
	memberFrom         = "from"
	memberTo           = "to"
	memberRelation     = "relationType"
	memberExtra        = "extra"
)

// ID returns the entity's id.
func (e *Entity) ID() string { return EntityID(e.Name) }

// Memory returns the memory that represents a new entity. The memory's timestamp is t, which determines the memory's
// place in listings. extra has further members of the line, and may be nil.
func (e *Entity) Memory(t time.Time, extra map[string]any) memstore.Memory {
	m := memstore.Memory{ID: e.ID(), Timestamp: t, Metadata: map[string]any{
		"category": EntityCategory, "key": e.Name, memberType: e.Type,
	}}
	if len(extra) > 0 {
		m.Metadata[memberExtra] = extra
	}
	e.Set(&m)
	return m
}

// Set sets the observations and the content of m, the memory from which the entity was read, to those of the entity.
// It leaves everything else in m unchanged.
func (e *Entity) Set(m *memstore.Memory) {
	if m.Metadata == nil {
		m.Metadata = map[string]any{}
	}
	list := make([]any, len(e.Observations))
	for i, o := range e.Observations {
		list[i] = o
	}
	m.Metadata[memberObservations] = list
	m.Content = e.content()
}

func (e *Entity) content() string {
	lines := make([]string, 0, 1+len(e.Observations))
	if e.Type == "" {
		lines = append(lines, e.Name)
	} else {
		lines = append(lines, fmt.Sprintf("%s (%s)", e.Name, e.Type))
	}
	return strings.Join(append(lines, e.Observations...), "\n")
}

// EntityOf returns the entity that a memory represents. It returns false if the memory is not an entity.
func EntityOf(m *memstore.Memory) (Entity, bool) {
	if !isEntityID(m.ID) {
		return Entity{}, false
	}
	name, short := strings.CutPrefix(m.ID, entityPrefix)
	if key, ok := m.Metadata["key"].(string); ok {
		name = key
	} else if !short {
		return Entity{}, false
	}
	if EntityID(name) != m.ID {
		return Entity{}, false
	}
	e := Entity{Name: name, Type: text(m.Metadata[memberType])}
	switch list := m.Metadata[memberObservations].(type) {
	case []any:
		e.Observations = make([]string, len(list))
		for i, o := range list {
			e.Observations[i] = text(o)
		}
	case nil:
	default:
		e.Observations = []string{text(list)} // an edit by hand
	}
	return e, true
}

// Memory returns the memory that represents a new relation; see Entity.Memory.
func (r Relation) Memory(at time.Time, extra map[string]any) memstore.Memory {
	m := memstore.Memory{
		ID: r.ID(), Timestamp: at, Content: strings.Join(slices.DeleteFunc([]string{r.From, r.Type, r.To},
			func(s string) bool { return s == "" }), " "),
		Metadata: map[string]any{"category": RelationCategory, memberFrom: r.From, memberTo: r.To, memberRelation: r.Type},
	}
	if len(extra) > 0 {
		m.Metadata[memberExtra] = extra
	}
	return m
}

// RelationOf returns the relation that a memory represents. It returns false if the memory is not a relation.
func RelationOf(m *memstore.Memory) (Relation, bool) {
	if !IsRelationID(m.ID) {
		return Relation{}, false
	}
	from, ok1 := m.Metadata[memberFrom].(string)
	to, ok2 := m.Metadata[memberTo].(string)
	kind, ok3 := m.Metadata[memberRelation].(string)
	r := Relation{From: from, To: to, Type: kind}
	return r, ok1 && ok2 && ok3 && r.ID() == m.ID
}
