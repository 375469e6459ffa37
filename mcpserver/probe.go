package mcpserver

import (
	"bytes"
	"errors"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// probe is a ping that this package sends to the SDK. The SDK's answer means that every earlier message was handled,
// and that a server that supports bypassing the SDK (see aside) has announced it. A probe is sent before the first
// call that may bypass the SDK, and after manyNotices notifications.
//
// Until the probe is answered the SDK gets no messages, except responses to its own requests: the SDK handles
// notifications one at a time, and a handler may be waiting for such a response. Other messages are held, and count as
// bytes in flight.
type probe struct {
	sent bool // a probe is sent and not answered
	over bool // a probe was answered
}

// manyNotices is the number of notifications passed to the SDK after which a probe is sent. Without probes the SDK
// would queue any number of notifications.
const manyNotices = 64

// ask sends a probe. If line is not nil, ask keeps that line of input until the probe is answered.
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

// asked reports whether a probe was answered. After the answer it is known whether the server supports bypassing the
// SDK.
func (c *connection) asked() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.probe.over
}

// arrived processes a line of input, or holds it back until the probe is answered.
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

func (c *connection) hold(in input, i int) {
	c.held = slices.Insert(c.held, i, in)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queued += in.small()
}

// heldBack returns the first line that was held back, if that line may be processed now.
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
