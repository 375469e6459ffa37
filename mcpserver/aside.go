package mcpserver

import (
	"bytes"
	"io"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// aside is what bypasses the SDK between Stdio and a server of New, because the SDK copies
// arguments four times and answers three times: arguments of more than asideFrom bytes, and large
// answers. With a server that is not of New, Stdio passes everything through the SDK.
type aside struct {
	arguments []byte  // of a tools/call; nil: they were passed through the SDK
	answer    *answer // replaces the slots in the result that the SDK encodes
}

const asideFrom = 16 << 10

// aboutCall is the key under which a request of the SDK carries its call: TokenInfo is the only
// field for other data.
const aboutCall = "github.com/varve-db/varve/mcpserver"

func (c *call) extra(of *connection) *mcp.RequestExtra {
	return &mcp.RequestExtra{TokenInfo: &auth.TokenInfo{Extra: map[string]any{aboutCall: c,
		aboutCall + ".connection": of}}}
}

// callOf returns the call of a request, nil if the transport is not Stdio.
func callOf(extra *mcp.RequestExtra) *call {
	if extra == nil || extra.TokenInfo == nil {
		return nil
	}
	c, _ := extra.TokenInfo.Extra[aboutCall].(*call)
	return c
}

// takes tells Stdio that its server supports bypassing the SDK (see aside).
func takes(extra *mcp.RequestExtra) {
	if extra != nil && extra.TokenInfo != nil {
		if c, ok := extra.TokenInfo.Extra[aboutCall+".connection"].(*connection); ok {
			c.taken.Store(true)
		}
	}
}

// slots are placeholders in a result for the parts of an answer.
const (
	slotText       = "varve: text"
	slotStructured = "varve: structured"
)

// fill writes a result with its slots replaced by the answer.
func (a *answer) fill(to io.Writer, result []byte) error {
	p := &pieces{to: to}
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

// pieces writes pieces until a write fails.
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

// escaped writes a piece of the content of a JSON string.
func (p *pieces) escaped(b []byte) {
	p.buf = appendEscaped(p.buf[:0], b)
	p.write(p.buf)
}
