package mcpserver

import (
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
}

func (l *long) Error() string {
	return fmt.Sprintf("a message of more than %d bytes: nothing of it was done; send it in parts", MaxLine)
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
	}
	l.name, l.text = "", nil
}

// call is the id, false where the message is no call.
func (l *long) call() (id jsonrpc.ID, ok bool) {
	var v any
	if !l.method || len(l.id) > longText || json.Unmarshal(l.id, &v) != nil || v == nil {
		return id, false
	}
	id, err := jsonrpc.MakeID(v)
	return id, err == nil
}
