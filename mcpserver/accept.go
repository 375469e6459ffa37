package mcpserver

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// maxListens is the maximum number of calls that listen for changes at once.
const maxListens = 100

// accept adds a call of the client to the running and waiting calls. The call runs when its turn comes. If accept
// returns a message, the SDK must get that message before the call.
func (c *connection) accept(e *envelope, in input) jsonrpc.Message {
	k := &call{Request: &jsonrpc.Request{Method: e.method, Params: e.params}, id: bytes.Clone(e.id),
		listens: e.method == "subscriptions/listen"}
	k.key, _ = idKey(e.id)
	k.size, k.large = in.small()+int64(len(e.id)), in.large
	rest, arguments := e.params, []byte(nil)
	if e.method == "tools/call" && len(e.params) > asideFrom {
		rest, arguments = withoutArguments(e.params)
	}
	if len(rest) > maxRest {
		c.holdsLarge(-in.large)
		c.reply(refuse(e.id, jsonrpc.CodeInvalidRequest,
			"params of %d bytes, not counting the arguments of a tool, exceed the limit of %d bytes", len(rest),
			maxRest))
		return nil
	}
	if k.mayGoAside() && !c.asked() {
		return c.ask(&in)
	}
	if arguments != nil && c.taken.Load() {
		k.reach = reachOf(k.Request)
		k.Params, k.arguments = rest, arguments
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var why string
	switch {
	case c.ids[k.key] != nil:
		why = "a call with this id is still running; this one was not executed"
	case k.listens && c.listens == maxListens:
		why = fmt.Sprintf("%d calls already listen for changes → cancel one first", maxListens)
	}
	if why != "" {
		c.large -= in.large
		signal(c.room)
		c.replyLocked(refuse(e.id, jsonrpc.CodeInvalidRequest, "%s", why))
		return nil
	}
	c.add(k)
	return nil
}

// mayGoAside reports whether the method of the call is one whose arguments or answer may bypass the SDK (see aside).
func (c *call) mayGoAside() bool { return c.Method == "tools/call" || c.Method == "resources/read" }

// add gives a call a number that replaces its id for the SDK. The SDK clears the id in a request if
// another request with an equal id is in flight, and reads numbers as float64: so all numbers are
// different, and none is beyond 2^53.
func (c *connection) add(k *call) {
	c.numbers++
	k.ID, _ = jsonrpc.MakeID(c.numbers)
	if k.id == nil || k.mayGoAside() && c.taken.Load() { // without support for aside a server gets the plain request
		k.Extra = k.extra(c)
	}
	c.calls[k.ID] = k
	if k.id != nil {
		c.ids[k.key] = k
	}
	if k.listens {
		c.listens++
	}
	c.queued += k.size
	if k.id == nil {
		c.order.run(k)
	} else {
		c.order.take(k)
	}
}

// over removes a call that has ended from the calls in flight, whether the call was answered or not.
func (c *connection) over(k *call) {
	if c.calls[k.ID] != k {
		return
	}
	delete(c.calls, k.ID)
	if c.ids[k.key] == k {
		delete(c.ids, k.key)
	}
	if k.listens {
		c.listens--
	}
	c.queued -= k.size
	c.large -= k.large
	c.order.answered(k.ID)
	signal(c.room)
	signal(c.free)
}

// withoutArguments splits the params of a tools/call into the arguments and the rest. If the arguments are
// small, it returns params unchanged, and nil.
func withoutArguments(params []byte) (rest, arguments []byte) {
	members, err := membersOf(params)
	if arguments = members["arguments"]; err != nil || len(arguments) <= asideFrom {
		return params, nil
	}
	rest = []byte{'{'}
	for name, value := range members {
		if name != "arguments" {
			rest = append(append(append(appendString(rest, name), ':'), value...), ',')
		}
	}
	return append(rest, `"arguments":{}}`...), arguments
}

// reply sends the error responses to lines that are not valid messages. It returns before the responses are written.
func (c *connection) reply(list ...*refusal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replyLocked(list...)
}

func (c *connection) replyLocked(list ...*refusal) {
	for _, r := range slices.DeleteFunc(list, func(r *refusal) bool { return r == nil }) {
		c.queued += r.size()
		c.replies = append(c.replies, r)
	}
	if !c.replying && len(c.replies) > 0 {
		c.replying = true
		go c.answerAll()
	}
}
