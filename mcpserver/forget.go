package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/graph"
	"github.com/varve-db/varve/internal/project"
)

func (c *memoryCall) forget(ctx context.Context) (*answer, error) {
	typed, session := c.texts("ids"), c.text("session")
	switch {
	case len(typed) > maxForget:
		return nil, fmt.Errorf("ids: %d exceed the limit of %d; use several calls", len(typed), maxForget)
	case len(typed) > 0 && c.text("key") != "":
		return nil, errors.New("ids and key: give one of them")
	case len(typed) == 0:
		if _, empty := c.args["ids"]; c.text("key") == "" && !empty {
			return nil, errors.New("ids: missing → give ids, or a key")
		}
	}
	ids, missing := []string(nil), []string(nil)
	if c.text("key") != "" {
		id, err := c.target(ctx, true)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	for _, t := range typed {
		if graph.IsID(t) {
			return nil,
				fmt.Errorf("%q belongs to the knowledge graph: use delete_entities or delete_relations; nothing was forgotten", t)
		}
		if t == takenID {
			return nil,
				fmt.Errorf("%q records the import of the old file, so that memories deleted since are not restored; "+
					"nothing was forgotten", t)
		}
		id, err := c.view.Resolve(ctx, t, true)
		switch {
		case errors.Is(err, varve.ErrNotFound):
			if !slices.Contains(missing, t) {
				missing = append(missing, t)
			}
		case err != nil:
			return nil, fmt.Errorf("%w; nothing was forgotten", err)
		case !slices.Contains(ids, id):
			ids = append(ids, id)
		}
	}
	var gone []varve.Memory
	unseen := slices.Clone(missing)
	err := c.view.Transact(ctx, func(tx *project.Tx) error {
		gone, missing = nil, slices.Clone(unseen)
		for _, id := range ids {
			m, err := tx.Get(id)
			if errors.Is(err, varve.ErrNotFound) {
				missing = append(missing, id)
				continue
			}
			if err == nil && ofGraph(id) {
				err = fmt.Errorf("%q belongs to the knowledge graph; nothing was forgotten", id)
			}
			if err == nil && session != "" && m.Session() != session {
				err = fmt.Errorf("%q belongs to another session than %q; nothing was forgotten", id, clipped(session))
			}
			if err == nil {
				err = tx.Delete(id)
			}
			if err != nil {
				return err
			}
			m.Content, _ = cut(m.Content, shownChars)
			gone = append(gone, m)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var lines, forgotten []string
	for i := range gone {
		forgotten = append(forgotten, gone[i].ID)
		if len(gone) <= mostNamed {
			lines = append(lines, "forgot "+head(&gone[i], c.starred(&gone[i]), c.now.Location())+oneLine(gone[i].Content))
		}
	}
	if len(gone) > mostNamed {
		lines = append(lines, fmt.Sprintf("forgot %d memories", len(gone)))
	}
	if len(gone) > 0 {
		lines = append(lines, "undo {} takes this back; memctl purge erases for good")
	}
	if len(missing) > 0 {
		short, _ := cut(strings.Join(missing, ", "), maxLabels)
		lines = append(lines, "not there: "+oneLine(short))
	}
	if len(lines) == 0 {
		lines = append(lines, "nothing to forget")
	}
	return c.linesAnswer(lines, func(w *writer) {
		w.open('{')
		w.texts("forgotten", forgotten)
		w.texts("missing", missing)
		w.close('}')
	}), nil
}

// mostNamed is the maximum number of memories that the answer to a change lists one by one.
const mostNamed = 20
