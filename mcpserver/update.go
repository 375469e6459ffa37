package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/project"
	"github.com/varve-db/varve/internal/timearg"
)

// pinned is the tag of the memories that the tool context always shows. The search for this tag does not read all
// memories.
const pinned = "pinned"

// reserved are the members of the metadata that callers cannot set with the argument metadata. Each of them either has
// an argument of its own, whose name is the value in this map, or belongs to the server.
var reserved = map[string]string{"session_id": "session", "category": "category", "key": "key", "tags": "tags",
	project.Member: "", project.SupersededBy: "replaces"}

// describe sets the properties of a memory, other than its text, from the arguments of remember or update.
func (c *memoryCall) describe(m *varve.Memory) error {
	if m.Metadata == nil {
		m.Metadata = map[string]any{}
	}
	more := c.object("metadata")
	for _, name := range slices.Sorted(maps.Keys(more)) {
		if use, is := reserved[name]; is {
			if use == "" {
				return fmt.Errorf("metadata: %s is reserved", name)
			}
			return fmt.Errorf("metadata: %s is reserved → use the argument %s", name, use)
		}
		m.Metadata[name] = more[name]
	}
	for _, name := range []string{"session", "category", "key"} {
		if n := len(c.text(name)); n > maxSession {
			return fmt.Errorf("%s: %d bytes exceed the limit of %d", name, n, maxSession)
		}
	}
	if v := c.text("category"); v != "" {
		m.Metadata["category"] = v
	}
	if _, ok := c.args["tags"]; ok {
		was := slices.Contains(tagsOf(m), pinned)
		if m.Metadata["tags"] = anys(c.texts("tags")); len(c.texts("tags")) == 0 {
			delete(m.Metadata, "tags")
		}
		if was {
			pin(m, true)
		}
	}
	if on, ok := c.args["pin"].(bool); ok {
		pin(m, on)
	}
	if v := c.text("happened"); v != "" {
		s, err := timearg.Parse(v, c.now.Local())
		if err != nil {
			return fmt.Errorf("happened: %w", err)
		}
		m.Timestamp = s.From
	}
	if _, ok := c.args["importance"]; ok {
		f := c.float("importance")
		if !(f >= 0 && f <= 1) {
			return fmt.Errorf("importance: %v: must be from 0 to 1", c.args["importance"].(json.Number))
		}
		m.QuickRecalScore = f
	}
	if _, ok := c.args["ttl"]; ok {
		if ttl := c.number("ttl", 0); ttl > 0 {
			m.ExpiresAt = c.now.Add(time.Duration(ttl) * time.Second)
		} else {
			m.ExpiresAt = time.Time{}
		}
	}
	return nil
}

func pin(m *varve.Memory, enable bool) {
	tags := slices.DeleteFunc(tagsOf(m), func(t string) bool { return t == pinned })
	if enable {
		tags = append(tags, pinned)
	}
	if m.Metadata["tags"] = anys(tags); len(tags) == 0 {
		delete(m.Metadata, "tags")
	}
}

// target returns the id of the memory that a call concerns: the memory given by the argument id, or by the arguments
// key and session. If change is true, the memory must be one that the tools may change.
func (c *memoryCall) target(ctx context.Context, change bool) (string, error) {
	id, key := c.text("id"), c.text("key")
	switch {
	case id != "" && key != "":
		return "", errors.New("id and key: give one of them")
	case id != "":
		return c.view.Resolve(ctx, id, change)
	case key == "":
		return "", errors.New("id: missing → give the id of a memory, or its key")
	}
	for _, shared := range []bool{false, true} { // the project's own first
		all, err := c.withKey(ctx, c.text("session"), key, func(m *varve.Memory) bool {
			return c.view.Shared(m) == shared
		})
		if err != nil || len(all) > 0 {
			if err != nil {
				return "", err
			}
			return all[0].ID, nil
		}
	}
	return "", fmt.Errorf("no memory has the key %q here: %w → recall finds it by words; a key belongs to its session",
		clipped(key), varve.ErrNotFound)
}

func (c *memoryCall) update(ctx context.Context) (*answer, error) {
	var ways []string
	for _, way := range []string{"text", "old", "append"} {
		if _, ok := c.args[way]; ok && c.text(way) != "" {
			ways = append(ways, way)
		}
	}
	_, hasNew := c.args["new"]
	switch {
	case len(ways) > 1:
		return nil, fmt.Errorf("%s: give one of text, old with new, and append", strings.Join(ways, " and "))
	case hasNew != slices.Contains(ways, "old"):
		return nil, errors.New("old and new: give both")
	}
	if _, ok := c.args["text"]; ok && strings.TrimSpace(c.text("text")) == "" {
		return nil, errors.New("text is empty → forget deletes a memory")
	}
	if len(ways) == 0 && !slices.ContainsFunc([]string{"category", "tags", "happened", "importance", "ttl", "pin",
		"metadata"}, func(n string) bool { _, ok := c.args[n]; return ok }) {
		return nil, errors.New("nothing to change → give text, old and new, append, tags, ttl or another attribute")
	}
	id, err := c.target(ctx, true)
	if err != nil {
		return nil, err
	}
	if ofGraph(id) {
		return nil, fmt.Errorf("%q belongs to the knowledge graph: use its tools; nothing was changed", id)
	}
	var m varve.Memory
	l := c.s.loading(ctx)
	defer l.done()
	err = c.view.Transact(ctx, func(tx *project.Tx) error {
		l.bytes = 0
		var err error
		if m, err = l.get(tx, id); err != nil {
			return err
		}
		if s := c.text("session"); s != "" && m.Session() != s {
			return fmt.Errorf("%q belongs to another session than %q; nothing was changed", id, clipped(s))
		}
		if err := c.rewrite(&m); err != nil {
			return err
		}
		session, key := m.Metadata["session_id"], m.Metadata["key"]
		if err := c.describe(&m); err != nil {
			return err
		}
		m.Metadata["session_id"], m.Metadata["key"] = session, key
		for _, name := range []string{"session_id", "key"} {
			if m.Metadata[name] == nil {
				delete(m.Metadata, name)
			}
		}
		m, err = tx.Put(m)
		return err
	})
	if err != nil {
		return nil, err
	}
	short, isCut := cut(m.Content, shownChars)
	if isCut {
		short += " …"
	}
	line := "updated " + head(&m, c.starred(&m), c.now.Location()) + oneLine(short)
	return c.linesAnswer([]string{line}, func(w *writer) {
		w.open('{')
		w.text("id", m.ID)
		w.text("text", m.Content)
		w.close('}')
	}), nil
}

// shownChars is the maximum number of characters of a text that the answer to a change shows.
const shownChars = 200

func (c *memoryCall) starred(m *varve.Memory) bool { return c.project.ID != "" && c.view.Shared(m) }

// rewrite changes the text of m in the way that the arguments of the call request.
func (c *memoryCall) rewrite(m *varve.Memory) error {
	switch old := c.text("old"); {
	case c.text("text") != "":
		m.Content = c.text("text")
	case c.text("append") != "":
		m.Content = strings.TrimPrefix(m.Content+"\n"+c.text("append"), "\n")
	case old != "":
		n := strings.Count(m.Content, old)
		if n != 1 {
			text, isCut := cut(m.Content, shownChars)
			if isCut {
				text += " …"
			}
			return fmt.Errorf("old occurs %d times, and must occur once; nothing was changed; the text is: %s", n, oneLine(text))
		}
		m.Content = strings.Replace(m.Content, old, c.text("new"), 1)
		if strings.TrimSpace(m.Content) == "" {
			return errors.New("nothing would be left of the text → forget deletes a memory")
		}
	default:
		return nil
	}
	return nil
}
