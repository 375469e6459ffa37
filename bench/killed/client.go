package main

import (
	"context"
	"fmt"
	"time"
)

// pause is the pause of a client between two writes.
const pause = 2 * time.Millisecond

// away is how long a client waits when the server does not answer.
const away = 20 * time.Millisecond

// sharedMemories is the number of memories that all clients write.
const sharedMemories = 4

// createShared creates the memories that all clients share, and returns them.
func createShared(ctx context.Context, c *api, r *record) ([]memory, error) {
	var all []memory
	for i := range sharedMemories {
		path, content := fmt.Sprintf("/shared/%d.md", i), fmt.Sprintf("shared %d", i)
		a := c.create(ctx, path, content)
		if !a.ok() {
			return nil, fmt.Errorf("creating %s: %d %s", path, a.status, a.text)
		}
		all = append(all, memory{ID: a.memory.ID, Path: path})
		sent := map[string]bool{hashOf(content): true}
		r.shared[path] = &history{id: a.memory.ID, from: map[string][]string{}, sent: sent}
	}
	return all, nil
}

// client writes to memories of its own and to shared ones.
type client struct {
	i      int
	api    *api
	r      *record
	shared []memory
	byPath bool

	m       memory // its own memory; without an ID while the client has none
	updates int    // of it
}

// write writes until ctx ends.
func (c *client) write(ctx context.Context) {
	for n := 0; rest(ctx, pause); n++ {
		if n%5 == 4 {
			c.writeShared(ctx, n)
		} else {
			c.writeOwn(ctx, n)
		}
	}
}

// rest waits, and reports whether there is a next write.
func rest(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// writeOwn creates, updates or deletes the memory of the client.
func (c *client) writeOwn(ctx context.Context, n int) {
	kind, content := "updates", fmt.Sprintf("client %d says %d", c.i, n)
	switch {
	case c.m.ID == "":
		kind, c.m.Path, c.updates = "creates", fmt.Sprintf("/own%d/%d.md", c.i, n), 0
	case c.updates == 18 && !c.byPath:
		kind, content = "deletes", ""
	}
	c.r.begin(c.m.Path, content)
	var a answer
	switch hash := c.m.Hash; kind {
	case "creates":
		a = c.api.create(ctx, c.m.Path, content)
	case "deletes":
		a = c.api.remove(ctx, c.m.ID)
	default:
		if c.updates%2 == 0 {
			hash = ""
		}
		a = c.api.update(ctx, c.m, content, hash)
	}
	if !a.ok() {
		c.r.refused(&a, c.byPath)
		c.m.ID = "" // the content is one of two: the client no longer writes to the memory
		rest(ctx, away)
		return
	}
	c.r.done(kind, c.m.Path, content)
	c.m.ID, c.m.Hash = a.memory.ID, a.memory.Hash
	if kind == "updates" {
		c.updates++
	}
	if kind == "deletes" || c.byPath && c.updates == 18 {
		c.m.ID = ""
	}
}

// writeShared updates a shared memory on condition of the content that it has.
func (c *client) writeShared(ctx context.Context, n int) {
	m := c.shared[n%len(c.shared)]
	now := c.api.get(ctx, m.ID)
	if !now.ok() {
		if !now.unknown() {
			c.r.refused(&now, c.byPath)
		}
		rest(ctx, away)
		return
	}
	content := fmt.Sprintf("client %d says %d of %s", c.i, n, m.Path)
	c.r.beginShared(m.Path, content)
	a := c.api.update(ctx, m, content, now.memory.Hash)
	if !a.ok() {
		c.r.refused(&a, c.byPath)
		return
	}
	c.r.doneShared(m.Path, content, now.memory.Hash)
}
