package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// tool is one tool: its description for clients, and the function that runs it.
type tool struct {
	name, title, about string
	in, out            *shape
	hints              hints
	run                func(ctx context.Context, s *server, args args) (*answer, error)
}

type hints struct{ readOnly, destructive, idempotent bool }

func (t *tool) declaration() *mcp.Tool {
	open := false
	return &mcp.Tool{
		Name: t.name, Title: t.title, Description: t.about, InputSchema: t.in.schema(false), OutputSchema: t.out.schema(true),
		Annotations: &mcp.ToolAnnotations{
			ReadOnlyHint: t.hints.readOnly, DestructiveHint: &t.hints.destructive, IdempotentHint: t.hints.idempotent,
			OpenWorldHint: &open,
		},
	}
}

// json returns the tool's entry in a listing.
func (t *tool) json() json.RawMessage {
	var b []byte
	for _, m := range []struct{ name, value string }{{`{"name":`, t.name}, {`,"title":`, t.title},
		{`,"description":`, t.about}} {
		b = appendString(append(b, m.name...), m.value)
	}
	b = append(append(b, `,"inputSchema":`...), t.in.schema(false)...)
	b = fmt.Appendf(b, `,"annotations":{"readOnlyHint":%t,"destructiveHint":%t,"idempotentHint":%t,"openWorldHint":false}`,
		t.hints.readOnly, t.hints.destructive, t.hints.idempotent)
	b = append(b, `,"execution":{"taskSupport":"forbidden"},"outputSchema":`...)
	return append(append(b, t.out.schema(true)...), '}')
}

// plainResult is a mcp.CallToolResult that is encoded in one pass instead of two, which matters for
// large graphs.
type plainResult struct {
	mcp.ResultBase
	Content           []plainText     `json:"content"`
	StructuredContent json.RawMessage `json:"structuredContent,omitempty"`
	IsError           bool            `json:"isError,omitempty"`
}

type plainText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// newProtocol is the first version of the protocol whose results need members that plainResult
// lacks.
const newProtocol = "2026-07-28"

// plain converts a result to a plainResult, and returns it unchanged if that would lose something.
func plain(req mcp.Request, r mcp.Result) mcp.Result {
	call, ok := req.(*mcp.CallToolRequest)
	full, ok2 := r.(*mcp.CallToolResult)
	if !ok || !ok2 || call.ProtocolVersion() >= newProtocol || full.NeedsInput() {
		return r
	}
	p := &plainResult{ResultBase: mcp.ResultBase{Meta: full.Meta}, Content: []plainText{}, IsError: full.IsError}
	p.StructuredContent, ok = full.StructuredContent.(json.RawMessage)
	if !ok && full.StructuredContent != nil {
		return r
	}
	for _, c := range full.Content {
		text, ok := c.(*mcp.TextContent)
		if !ok || text.Meta != nil || text.Annotations != nil {
			return r
		}
		p.Content = append(p.Content, plainText{"text", text.Text})
	}
	return p
}
