package mcpserver

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// long reads a message of more than MaxLine bytes without keeping it. It keeps only the id of the call, which may be
// anywhere in the message, so that the client gets an error response. If the message is not valid JSON, long may take
// other text for an id; then a call is answered that was never made.
type long struct {
	depth   int
	quoted  bool
	escaped bool

	text   []byte // the last string or bare value at the top level of the message
	name   string // name of the member whose value follows, "" before a name
	id     []byte
	method bool // the message has a method, so it is not a response
	answer bool // the message has a result or an error
}

func (l *long) Error() string {
	return fmt.Sprintf("a message of more than %d bytes was not processed; send it in parts", MaxLine)
}

// longText is the maximum length of a name or id that is kept; longer ones are ignored.
const longText = 256

func (l *long) read(p []byte) {
	for _, c := range p {
		l.take(c)
	}
}

func (l *long) take(c byte) {
	if l.depth == 1 && len(l.text) <= longText && (l.quoted || c != ',' && c != '}' && c != ':') {
		l.text = append(l.text, c)
	}
	switch {
	case l.quoted:
		switch {
		case l.escaped:
			l.escaped = false
		case c == '\\':
			l.escaped = true
		case c == '"':
			l.quoted = false
		}
	case c == '"':
		l.quoted = true
	case c == '{', c == '[':
		if l.depth++; l.depth == 1 {
			l.text = nil
		}
	case c == '}', c == ']':
		if l.depth == 1 {
			l.member()
		}
		l.depth--
	case c == ':' && l.depth == 1:
		l.name, l.text = string(l.text), nil
		_ = json.Unmarshal([]byte(l.name), &l.name)
	case c == ',' && l.depth == 1:
		l.member()
	}
}

// member processes a complete member of the message: its name and its value.
func (l *long) member() {
	switch l.name {
	case "id":
		l.id = l.text
	case "method":
		l.method = true
	case "result", "error":
		l.answer = true
	}
	l.name, l.text = "", nil
}

// call returns the id of the call that the message makes. ok is false if the message is not a call or its id is not
// valid.
func (l *long) call() (id jsonrpc.ID, ok bool) {
	if _, ok := idKey(l.raw()); !ok || !l.method || len(l.id) > longText {
		return id, false
	}
	var v any
	_ = json.Unmarshal(l.id, &v) // a number may exceed the range of Go's types
	id, _ = jsonrpc.MakeID(v)
	return id, true
}

// answers returns the id of the request that the message answers. ok is false if the message is not a response or its
// id is not valid.
func (l *long) answers() (id []byte, ok bool) {
	_, ok = idKey(l.raw())
	return l.raw(), ok && l.answer && !l.method && len(l.id) <= longText
}

// raw returns the id in the form in which it was received.
func (l *long) raw() []byte { return bytes.TrimSpace(l.id) }

// refusal returns the error response to the message, or nil for a notification or a response, which get none.
func (l *long) refusal() *refusal {
	if _, ok := l.call(); ok {
		return refuse(l.raw(), jsonrpc.CodeInvalidRequest, "%s", l.Error())
	}
	if l.method && l.id == nil || l.answer && !l.method {
		return nil
	}
	return refuse(nil, jsonrpc.CodeInvalidRequest, "%s", l.Error())
}
