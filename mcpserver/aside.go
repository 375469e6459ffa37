package mcpserver

import (
	"bytes"
	"io"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// aside has the parts of a call that are passed between Stdio and the server without the SDK, because the SDK
// copies arguments four times and answers three times: arguments of more than asideFrom bytes, and large
// answers. A server that New did not create does not support this; then Stdio passes everything through the
// SDK.
type aside struct {
	arguments []byte  // arguments of a tools/call; nil: they were passed through the SDK
	answer    *answer // answer that replaces the placeholders in the result that the SDK encodes
}

const asideFrom = 16 << 10

// aboutCall is the key in TokenInfo.Extra under which a request of the SDK carries its call: the SDK has no other field
// in which a transport can pass data to a handler.
const aboutCall = "github.com/varve-db/varve/mcpserver"

func (c *call) extra(conn *connection) *mcp.RequestExtra {
	return &mcp.RequestExtra{TokenInfo: &auth.TokenInfo{Extra: map[string]any{aboutCall: c,
		aboutCall + ".connection": conn}}}
}

// callOf returns the call that a request of the SDK belongs to. It returns nil if the transport is not Stdio.
func callOf(extra *mcp.RequestExtra) *call {
	if extra == nil || extra.TokenInfo == nil {
		return nil
	}
	c, _ := extra.TokenInfo.Extra[aboutCall].(*call)
	return c
}

// takes records, for the Stdio connection of a request, that the server can receive data that bypasses the SDK (see
// aside).
func takes(extra *mcp.RequestExtra) {
	if extra != nil && extra.TokenInfo != nil {
		if c, ok := extra.TokenInfo.Extra[aboutCall+".connection"].(*connection); ok {
			c.taken.Store(true)
		}
	}
}

// Placeholders in a result of the SDK for the text and the structured content of an answer.
const (
	slotText       = "varve: text"
	slotStructured = "varve: structured"
)

// fill writes result to w, with the placeholders in result replaced by the answer.
func (a *answer) fill(w io.Writer, result []byte) error {
	p := &pieces{to: w}
	for {
		i := bytes.Index(result, []byte(`"varve: `))
		if i < 0 {
			p.write(result)
			return p.err
		}
		p.write(result[:i])
		if rest, ok := bytes.CutPrefix(result[i:], []byte(`"`+slotText+`"`)); ok {
			result = rest
			p.write([]byte{'"'})
			a.write(a.text, true, p.escaped)
			p.write([]byte{'"'})
		} else if rest, ok := bytes.CutPrefix(result[i:], []byte(`"`+slotStructured+`"`)); ok {
			result = rest
			a.write(a.structured, false, p.write)
		} else {
			p.write(result[i : i+1])
			result = result[i+1:]
		}
	}
}

// pieces writes pieces of an answer to a writer, and stops at the first write that fails.
type pieces struct {
	to  io.Writer
	buf []byte
	err error
}

func (p *pieces) write(b []byte) {
	if p.err == nil && len(b) > 0 {
		_, p.err = p.to.Write(b)
	}
}

// escaped writes a piece of the content of a JSON string, with JSON escapes.
func (p *pieces) escaped(b []byte) {
	p.buf = appendEscaped(p.buf[:0], b)
	p.write(p.buf)
}
