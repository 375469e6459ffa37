package mcpserver

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/graph"
)

// entity and relation have the data of a memory that the graph's tools need. They are never changed.
type entity struct {
	graph.Entity
	node
}

type relation struct {
	graph.Relation
	node
}

type node struct {
	id      string
	at      time.Time // time of creation, by which answers are sorted
	expires time.Time
}

func (n *node) isExpired(now time.Time) bool { return !n.expires.IsZero() && !now.Before(n.expires) }

func (n *node) self() *node { return n }

// byAge compares two nodes in the order of the answers: oldest first.
func byAge[T interface{ self() *node }](a, b T) int {
	x, y := a.self(), b.self()
	return cmp.Or(x.at.Compare(y.at), strings.Compare(x.id, y.id))
}

func nodeOf(m *varve.Memory) node { return node{id: m.ID, at: m.Timestamp, expires: m.ExpiresAt} }

func entityOf(m *varve.Memory) *entity {
	if e, ok := graph.EntityOf(m); ok {
		return &entity{e, nodeOf(m)}
	}
	return nil
}

func relationOf(m *varve.Memory) *relation {
	if r, ok := graph.RelationOf(m); ok {
		return &relation{r, nodeOf(m)}
	}
	return nil
}

func sortEntities(list []*entity)    { slices.SortFunc(list, byAge[*entity]) }
func sortRelations(list []*relation) { slices.SortFunc(list, byAge[*relation]) }

// nodes gives the tools of the group graph access to the graph, approximately as of one moment. There are two
// implementations: if the graph is small enough, a copy in memory (view); otherwise reads of the store (scan).
type nodes interface {
	entities(ctx context.Context, f func(*entity)) error
	relations(ctx context.Context, f func(*relation)) error
	named(ctx context.Context, name string) (*entity, error) // nil: no such entity
	touching(ctx context.Context, names map[string]bool, f func(*relation)) error
}

// scan is the graph, read from the store for each query. Its use of memory does not depend on the size of the
// graph.
type scan struct {
	st  *varve.Store
	bad func(error) // called with the error of each memory that cannot be read
}

func (s scan) entities(ctx context.Context, f func(*entity)) error {
	return s.each(ctx, graph.EntityPrefix, func(m *varve.Memory) {
		if e := entityOf(m); e != nil {
			f(e)
		}
	})
}

func (s scan) relations(ctx context.Context, f func(*relation)) error {
	return s.each(ctx, graph.RelationPrefix, func(m *varve.Memory) {
		if r := relationOf(m); r != nil {
			f(r)
		}
	})
}

func (s scan) each(ctx context.Context, prefix string, f func(*varve.Memory)) error {
	for m, err := range s.st.Memories(ctx, varve.WithPrefix(prefix)) {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && isOne(err):
			s.bad(err)
		case err != nil:
			return err
		default:
			f(&m)
		}
	}
	return ctx.Err()
}

// every calls f for each entity and relation of the graph. Several goroutines read, so the order is random, but only
// one call of f runs at a time. For each memory that cannot be read, every calls lost with the memory's id; the id is
// "" if it is unknown.
func (s scan) every(ctx context.Context, f func(*entity, *relation), lost func(id string, err error)) error {
	var one sync.Mutex
	var fatal error
	within, stop := context.WithCancel(ctx)
	defer stop()
	take := func(raw varve.Raw, err error) {
		var e *entity
		var r *relation
		if err == nil {
			e, r, err = s.node(within, raw)
		}
		one.Lock()
		defer one.Unlock()
		switch {
		case err != nil && isOne(err):
			lost(raw.ID, err)
		case err != nil: // temporary: a later attempt may succeed
			fatal = errors.Join(fatal, err)
			stop()
		case e != nil || r != nil:
			f(e, r)
		}
	}
	for _, prefix := range []string{graph.EntityPrefix, graph.RelationPrefix} {
		err := s.st.Admin().ScanRaw(within, take, varve.WithPrefix(prefix))
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case fatal != nil:
			return fatal
		case err != nil && !isOne(err):
			return err
		case err != nil:
			lost("", err)
		}
	}
	return nil
}

// node returns the entity or the relation that a memory contains; both are nil if it contains neither.
func (s scan) node(ctx context.Context, raw varve.Raw) (*entity, *relation, error) {
	if n, ok := graph.Read(raw.ID, raw.Doc); ok {
		of := node{id: raw.ID, at: n.At, expires: n.Expires}
		if n.Entity != nil {
			return &entity{*n.Entity, of}, nil, nil
		}
		return nil, &relation{*n.Relation, of}, nil
	}
	m, err := s.st.Get(ctx, raw.ID)
	if err != nil {
		if errors.Is(err, varve.ErrNotFound) || ctx.Err() != nil {
			err = nil
		}
		return nil, nil, err
	}
	return entityOf(&m), relationOf(&m), nil
}

// isOne reports whether an error concerns only one memory, so that the other memories can still be read.
func isOne(err error) bool {
	return errors.Is(err, varve.ErrCorrupt) || errors.Is(err, varve.ErrInvalid) || errors.Is(err, varve.ErrTooLarge) ||
		errors.Is(err, varve.ErrPermission)
}

func (s scan) named(ctx context.Context, name string) (*entity, error) {
	m, err := s.st.Get(ctx, graph.EntityID(name))
	switch {
	case errors.Is(err, varve.ErrNotFound):
		return nil, nil
	case err != nil && isOne(err):
		s.bad(err)
		return nil, nil
	case err != nil:
		return nil, err
	}
	return entityOf(&m), nil
}

func (s scan) touching(ctx context.Context, names map[string]bool, f func(*relation)) error {
	return s.relations(ctx, func(r *relation) {
		if names[r.From] || names[r.To] {
			f(r)
		}
	})
}
