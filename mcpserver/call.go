package mcpserver

import (
	"context"
	"strings"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/project"
)

// memoryCall is a call of a tool of the group memory. It reads and writes only through the view of the client's
// project.
type memoryCall struct {
	args
	view    *project.View
	project Project
	own     project.Own // the commits that the client may undo
	now     time.Time
	told    string // line with which the answer begins, "" for none
	s       *server
}

// memories returns the handler of a tool of the group memory: it calls f with the memoryCall for the client and
// its project.
func memories(f func(c *memoryCall, ctx context.Context) (*answer, error)) func(context.Context, *server,
	args) (*answer, error) {
	return func(ctx context.Context, s *server, a args) (*answer, error) {
		c := &memoryCall{args: a, s: s, now: s.o.Clock()}
		of, _ := ctx.Value(callerKey{}).(*caller)
		if of != nil {
			c.project, c.own.Name, c.told = of.of(), of.own(s.o.Session), of.news()
		}
		c.view = project.New(s.st, c.project.ID, s.deleted)
		return f(c, ctx)
	}
}

// linesAnswer returns an answer that consists of the given lines. If c.told is set, that line comes first.
func (c *memoryCall) linesAnswer(lines []string, structured func(*writer)) *answer {
	if c.told != "" {
		lines = append([]string{c.told}, lines...)
	}
	return textAnswer(strings.Join(lines, "\n"), structured)
}

// withKey returns the memories that have a key, from the last written to the first written. If session is "", these are
// the memories that belong to no session, otherwise the memories of that session. The function shared selects the part
// of the store: the project's own memories, or those that all projects share.
func (c *memoryCall) withKey(ctx context.Context, session, key string, shared func(*varve.Memory) bool) ([]varve.Memory,
	error) {
	filters := []varve.Filter{varve.WithKey(key)}
	if session != "" {
		filters = append(filters, varve.InSession(session))
	}
	var all []varve.Memory
	for m, err := range c.view.All(ctx, filters...) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			if !isOne(err) {
				return nil, err
			}
			continue
		}
		if m.Session() == session && shared(&m) && !ofGraph(m.ID) {
			all = append(all, varve.Memory{ID: m.ID, UpdatedAt: m.UpdatedAt, Metadata: m.Metadata})
		}
	}
	newestFirst(all)
	return all, nil
}
