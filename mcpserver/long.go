package mcpserver

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// long is a message of more than MaxLine. Of it only that is kept for which its sender
// waits: the id of a call, wherever it stands among the members. Where it is no JSON
// anything may be taken for an id; then a call is answered that nobody has made.
type long struct {
	depth   int
	quoted  bool
	escaped bool

	text   []byte // the newest string or bare value of the message's own members
	name   string // of the member whose value comes, "" before a name
	id     []byte
	method bool // it has one: it is no answer
	answer bool // it has a result or an error
}

func (l *long) Error() string {
	return fmt.Sprintf("a message of more than %d bytes: it was not processed; send it in parts", MaxLine)
}

// longText is how much of a name or of an id is kept; longer ones are none.
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

// member is at the end of one.
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

// call is the id, false where the message is no call.
func (l *long) call() (id jsonrpc.ID, ok bool) {
	if _, ok := idKey(l.raw()); !ok || !l.method || len(l.id) > longText {
		return id, false
	}
	var v any
	_ = json.Unmarshal(l.id, &v) // a number may be beyond what Go has
	id, _ = jsonrpc.MakeID(v)
	return id, true
}

// answers is the id of a request of the server's, false where the message is no answer.
func (l *long) answers() (id []byte, ok bool) {
	_, ok = idKey(l.raw())
	return l.raw(), ok && l.answer && !l.method && len(l.id) <= longText
}

// raw is the id as it came.
func (l *long) raw() []byte { return bytes.TrimSpace(l.id) }

// refusal is the answer, nil where there is none: to a notification, or to an answer.
func (l *long) refusal() *refusal {
	if _, ok := l.call(); ok {
		return refuse(l.raw(), jsonrpc.CodeInvalidRequest, "%s", l.Error())
	}
	if l.method && l.id == nil || l.answer && !l.method {
		return nil
	}
	return refuse(nil, jsonrpc.CodeInvalidRequest, "%s", l.Error())
}
