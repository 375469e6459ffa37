package server

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// connections bounds the number of open connections: a client that opens many, without a token or a request, must not
// use up the files that the process may open. Beyond the limit, the connection that has waited longest for a request
// is closed.
type connections struct {
	most int

	mu      sync.Mutex
	open    map[net.Conn]*list.Element // element of waiting; nil while the connection has a request
	waiting list.List                  // of net.Conn, that which has waited longest first
}

// changed is the function for http.Server.ConnState: it records the new state of a connection. If there are too many
// connections, it closes those that have waited longest for a request.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		c.open[conn] = c.waiting.PushBack(conn)
		for len(c.open) > c.most {
			c.closeOldest() // at least conn waits
		}
	case http.StateIdle:
		if e, ok := c.open[conn]; ok && e == nil {
			c.open[conn] = c.waiting.PushBack(conn)
		}
	case http.StateClosed, http.StateHijacked:
		c.remove(conn)
	}
}

// closeOldest closes the connection that has waited longest for a request.
func (c *connections) closeOldest() {
	conn, _ := c.waiting.Front().Value.(net.Conn)
	c.remove(conn)
	if t, secure := conn.(*tls.Conn); secure {
		conn = t.NetConn() // without a message that the client would have to read
	}
	_ = conn.Close()
}

// closeWaiting closes all connections that wait for a request.
func (c *connections) closeWaiting() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.waiting.Len() > 0 {
		c.closeOldest()
	}
}

func (c *connections) remove(conn net.Conn) {
	if e := c.open[conn]; e != nil {
		c.waiting.Remove(e)
	}
	delete(c.open, conn)
}

// began records that the connection of a request no longer waits for a request, because the headers of the request
// have been read. ctx is the context of the request.
func (c *connections) began(ctx context.Context) {
	conn, ok := ctx.Value(connKey{}).(net.Conn)
	if !ok {
		return // the http.Server is that of a host
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.open[conn]; e != nil {
		c.waiting.Remove(e)
		c.open[conn] = nil
	}
}

type connKey struct{}

// withConn is the function for http.Server.ConnContext: it returns a context with which began finds the connection of a
// request.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}
