package mcpserver

import (
	"bytes"
	"errors"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// probe is a ping of ours, which the SDK answers. Its answer says that everything is handled
// that came before it, and that the server has seen by then whether it takes what goes past
// the SDK. One is sent before the first call of which something may, and after manyNotices
// notifications.
//
// Until it is answered no message is given to the SDK, except answers to its own requests: the
// SDK handles notifications one at a time, and the handler of one may be waiting for such an
// answer. The others are held, and count as bytes in flight.
type probe struct {
	sent bool // and is not answered
	over bool // one is
}

// manyNotices is how many messages that are not answered the SDK gets before it is asked
// whether they are handled: it keeps as many as come.
const manyNotices = 64

// ask sends one, and holds a line until it is answered.
func (c *connection) ask(line *input) jsonrpc.Message {
	c.notices = 0
	if line != nil {
		c.hold(*line, 0)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	k := &call{Request: &jsonrpc.Request{Method: "ping"}}
	c.add(k)
	c.probe.sent = true
	return k.Request
}

// asked reports whether the server has been.
func (c *connection) asked() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.probe.over
}

// arrived takes what was read, or holds it.
func (c *connection) arrived(in input) jsonrpc.Message {
	c.eof = c.eof || in.err != nil && !isLong(in.err)
	c.mu.Lock()
	sent := c.probe.sent
	c.mu.Unlock()
	if (sent || len(c.held) > 0) && !isAnswer(in) {
		c.hold(in, len(c.held))
		return nil
	}
	return c.take(in)
}

func isAnswer(in input) bool {
	var l *long
	if errors.As(in.err, &l) {
		_, ok := l.answers()
		return ok
	}
	e, err := openLine(bytes.TrimSpace(in.line))
	return in.err == nil && err == nil && e.answer
}

func (c *connection) hold(in input, at int) {
	c.held = slices.Insert(c.held, at, in)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queued += in.small()
}

// heldBack is the first line that is held, if there is one and it may be taken.
func (c *connection) heldBack() (in input, ok bool) {
	if len(c.held) == 0 {
		return in, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.probe.sent {
		return in, false
	}
	in = c.held[0]
	c.held[0] = input{}
	c.held = c.held[1:]
	c.queued -= in.small()
	return in, true
}
