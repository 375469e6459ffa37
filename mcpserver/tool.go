package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// tool is one tool: what clients are told of it, and what it does.
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
			ReadOnlyHint: t.hints.readOnly, DestructiveHint: &t.hints.destructive, IdempotentHint: t.hints.idempotent, OpenWorldHint: &open,
		},
	}
}

// json is the tool in a listing.
func (t *tool) json() json.RawMessage {
	var b []byte
	for _, m := range []struct{ name, value string }{{`{"name":`, t.name}, {`,"title":`, t.title}, {`,"description":`, t.about}} {
		b = appendString(append(b, m.name...), m.value)
	}
	b = append(append(b, `,"inputSchema":`...), t.in.schema(false)...)
	b = fmt.Appendf(b, `,"annotations":{"readOnlyHint":%t,"destructiveHint":%t,"idempotentHint":%t,"openWorldHint":false}`,
		t.hints.readOnly, t.hints.destructive, t.hints.idempotent)
	b = append(b, `,"execution":{"taskSupport":"forbidden"},"outputSchema":`...)
	return append(append(b, t.out.schema(true)...), '}')
}

// args are arguments that fit the tool's shape.
type args map[string]any

// arguments reads them as JavaScript would: of a name that stands twice the last
// counts, half a surrogate pair is U+FFFD.
func (t *tool) arguments(raw json.RawMessage) (args, error) {
	var v any = map[string]any{}
	if len(raw) > 0 {
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		if err := dec.Decode(&v); err != nil {
			return nil, fmt.Errorf("the arguments of %s cannot be read: %w", t.name, err)
		}
	}
	if lines := t.in.check(v, false, "", nil); lines != nil {
		return nil, fmt.Errorf("MCP error -32602: Input validation error: Invalid arguments for tool %s: %s", t.name, strings.Join(lines, "\n"))
	}
	return v.(map[string]any), nil
}

func (a args) text(name string) string {
	s, _ := a[name].(string)
	return s
}

func (a args) number(name string, otherwise int) int {
	if n, ok := a[name].(json.Number); ok {
		if i, ok := whole(n); ok {
			return int(i)
		}
	}
	return otherwise
}

func (a args) flag(name string) bool {
	b, _ := a[name].(bool)
	return b
}

func (a args) texts(name string) []string { return texts(a[name]) }

// objects are the members of a list of objects.
func (a args) objects(name string) []args {
	list, _ := a[name].([]any)
	all := make([]args, len(list))
	for i, o := range list {
		all[i] = o.(map[string]any)
	}
	return all
}

func texts(v any) []string {
	list, _ := v.([]any)
	all := make([]string, len(list))
	for i, s := range list {
		all[i] = s.(string)
	}
	return all
}

// answer is a tool's result: for people and models as text, for programs as JSON.
type answer struct {
	text       string
	structured json.RawMessage
}

func (a *answer) result() *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: a.text}}, StructuredContent: a.structured}
}

// plainResult is a mcp.CallToolResult that is encoded in one pass instead of two, which
// large graphs are felt by.
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

// newProtocol is the first version of the protocol that wants more of a result than
// plainResult has.
const newProtocol = "2026-07-28"

// plain leaves alone what is no plain result.
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

func failed(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}, IsError: true}
}

// answered has the same JSON in both.
func answered(write func(w *writer)) *answer {
	text, structured := writer{pretty: true}, writer{}
	write(&text)
	write(&structured)
	return &answer{string(text.b), structured.b}
}

// listedAs has a bare list as text, and as a member of an object for programs.
func listedAs(member string, write func(w *writer)) *answer {
	text, structured := writer{pretty: true}, writer{}
	write(&text)
	structured.open('{')
	structured.member(member)
	write(&structured)
	structured.close('}')
	return &answer{string(text.b), structured.b}
}

// done says that something was done.
func done(message string) *answer {
	w := writer{}
	w.open('{')
	w.member("success")
	w.b = append(w.b, "true"...)
	w.text("message", message)
	w.close('}')
	return &answer{message, w.b}
}
