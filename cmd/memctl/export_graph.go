package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/graph"
)

// exportGraph writes the entities and then the relations of the knowledge graph, each in the order of creation. There
// is a line feed between two lines and none at the end. exportGraph returns the number of written entities and
// relations.
func exportGraph(ctx context.Context, a *cli.App, st *varve.Store, filters []varve.Filter, w io.Writer) (int, error) {
	type place struct {
		id string
		at time.Time
	}
	var entities, relations []place
	others := 0
	for m, err := range st.Memories(ctx, filters...) {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		if err != nil {
			a.Fail(err)
			continue
		}
		if _, ok := graph.EntityOf(&m); ok {
			entities = append(entities, place{m.ID, m.Timestamp})
		} else if _, ok := graph.RelationOf(&m); ok {
			relations = append(relations, place{m.ID, m.Timestamp})
		} else {
			others++
		}
	}
	n := 0
	var line []byte
	for _, list := range [][]place{entities, relations} {
		slices.SortFunc(list, func(x, y place) int { return cmp.Or(x.at.Compare(y.at), strings.Compare(x.id, y.id)) })
		for _, p := range list {
			m, err := st.Get(ctx, p.id)
			if errors.Is(err, varve.ErrNotFound) {
				continue // deleted meanwhile
			}
			if ctx.Err() != nil {
				return n, ctx.Err()
			}
			ok := false
			if err == nil {
				line, ok, err = graph.AppendLine(line[:0], &m)
			}
			if err != nil {
				a.Fail(cli.About("memory", p.id, err))
			}
			if err != nil || !ok {
				continue
			}
			if n > 0 {
				line = slices.Insert(line, 0, '\n')
			}
			if _, err := w.Write(line); err != nil {
				return n, err
			}
			n++
		}
	}
	if others > 0 {
		a.Note("omitted %s: neither an entity nor a relation", cli.Count(others, "memory", "memories"))
	}
	return n, nil
}
