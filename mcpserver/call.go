package mcpserver

import (
	"context"
	"strings"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/project"
)

// memoryCall is a call of the group memory. It reads and writes by the view of the client's project alone.
type memoryCall struct {
	args
	view    *project.View
	project Project
	own     project.Own // what the client may undo
	now     time.Time
	told    string // what the answer begins with
	s       *server
}

// memories runs a call of the group memory.
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

// said returns an answer that is lines of text.
func (c *memoryCall) said(lines []string, structured func(*writer)) *answer {
	if c.told != "" {
		lines = append([]string{c.told}, lines...)
	}
	return said(strings.Join(lines, "\n"), structured)
}

// withKey returns the memories that have a key, in one session or in none, in the part of the project or of the user.
// They are in the order of writing, the newest first.
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
