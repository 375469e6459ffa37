package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// tool is one tool of the server: its description for clients, and the function that runs it.
type tool struct {
	name, title, about string
	in, out            *shape
	hints              hints
	run                func(ctx context.Context, s *server, args args) (*answer, error)
}

type hints struct {
	readOnly, destructive, idempotent bool
	// lenient makes the tool accept the same arguments as the reference server: unknown names are ignored, and
	// no value is converted to another kind. All other tools are strict; see tool.strict.
	lenient bool
}

func (t *tool) declaration() *mcp.Tool {
	open := false
	d := &mcp.Tool{
		Name: t.name, Title: t.title, Description: t.about, InputSchema: t.in.schema(false),
		Annotations: &mcp.ToolAnnotations{
			ReadOnlyHint: t.hints.readOnly, DestructiveHint: &t.hints.destructive, IdempotentHint: t.hints.idempotent,
			OpenWorldHint: &open,
		},
	}
	if t.out != nil {
		d.OutputSchema = t.out.schema(true)
	}
	return d
}

// json returns the tool's entry in a list of tools.
func (t *tool) json() json.RawMessage {
	if t.title == "" {
		return t.short()
	}
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

// short returns the entry of a tool without the parts that a client does not need: hints with their default
// values, the title, and the schema of the output unless the host wants it.
func (t *tool) short() json.RawMessage {
	b := appendString([]byte(`{"name":`), t.name)
	b = appendString(append(b, `,"description":`...), t.about)
	b = t.in.appendSchema(append(b, `,"inputSchema":`...), false)
	b = append(b, `,"annotations":{`...)
	switch {
	case t.hints.readOnly:
		b = append(b, `"readOnlyHint":true,`...)
	case !t.hints.destructive:
		b = append(b, `"destructiveHint":false,`...)
	}
	b = append(b, `"openWorldHint":false}`...)
	if t.out != nil {
		b = t.out.appendSchema(append(b, `,"outputSchema":`...), true)
	}
	return append(b, '}')
}

// plainResult is a mcp.CallToolResult that is encoded in one pass instead of two, which saves much time for
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

// newProtocol is the first version of the protocol whose results have members that plainResult does not have.
const newProtocol = "2026-07-28"

// plain converts a result to a plainResult. If the conversion would lose data, plain returns the result unchanged.
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
