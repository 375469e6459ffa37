package mcpserver

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// answer is a tool's result: as text for people and models, as JSON for programs. It is written
// when it is sent: until then a large answer needs no memory besides the data that it shows.
type answer struct {
	text       func(*writer)
	structured func(*writer)
	image      *mcp.ImageContent // behind the text; nil: none
}

// maxAnswer is the maximum size in bytes of an answer to a query, as JSON with text and structure;
// clients accept about that much. A call that has written always gets its complete answer.
const maxAnswer = 32 << 20

// smallAnswer is the maximum size in bytes of an answer that passes through the SDK.
const smallAnswer = 32 << 10

// largeError means that an answer is larger than maxAnswer.
type largeError struct{ advice string }

func (e *largeError) Error() string {
	return fmt.Sprintf("the answer is larger than the %d bytes that one answer may be: %s", maxAnswer, e.advice)
}

// less returns an error with advice how to request less from a tool.
func less(tool string) error {
	switch tool {
	case "read_graph":
		return &largeError{"read it in parts, with search_nodes or open_nodes"}
	case "search_nodes":
		return &largeError{"use a more specific query, or open_nodes"}
	case "open_nodes":
		return &largeError{"name fewer at once"}
	}
	return &largeError{"request less at once"}
}

// write passes what f writes to sink, in pieces.
func (a *answer) write(f func(*writer), pretty bool, sink func([]byte)) {
	if f == nil {
		return
	}
	w := writer{pretty: pretty, sink: sink}
	f(&w)
	sink(w.b)
}

// size returns the number of bytes of the answer as JSON.
func (a *answer) size() int {
	n := 0
	a.write(a.text, true, func(b []byte) { n += escapedLen(b) })
	a.write(a.structured, false, func(b []byte) { n += len(b) })
	return n
}

// result returns the result of a call, or an error result if the answer is too large. On a
// connection of Stdio, a large answer is replaced by slots, which are filled while the message is
// written.
func (a *answer) result(t *tool, extra *mcp.RequestExtra) *mcp.CallToolResult {
	if t.out == nil {
		a = &answer{text: a.text, image: a.image}
	}
	n := a.size()
	if n > maxAnswer && t.hints.readOnly {
		return failed(less(t.name).Error())
	}
	if a.image != nil && n+base64.StdEncoding.EncodedLen(len(a.image.Data)) > maxAnswer {
		return failed(less(t.name).Error())
	}
	if c := callOf(extra); c != nil && n > smallAnswer && a.image == nil {
		c.answer = a
		r := &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: slotText}}}
		if a.structured != nil {
			r.StructuredContent = json.RawMessage(`"` + slotStructured + `"`)
		}
		return r
	}
	r := &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(written(a.text, true))}}}
	if a.structured != nil {
		r.StructuredContent = json.RawMessage(written(a.structured, false))
	}
	if a.image != nil {
		r.Content = append(r.Content, a.image)
	}
	return r
}

func written(f func(*writer), pretty bool) []byte {
	w := writer{pretty: pretty}
	f(&w)
	return w.b
}

func failed(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}, IsError: true}
}

// ready returns a function that writes b, in pieces.
func ready(b []byte) func(*writer) {
	return func(w *writer) {
		for part := range slices.Chunk(b, piece) {
			w.b = append(w.b, part...)
			w.pass()
		}
	}
}

// said returns an answer that is a text; structured is for hosts that want it, see Options.Structured.
func said(text string, structured func(*writer)) *answer {
	return &answer{text: ready([]byte(text)), structured: structured}
}

// answered returns an answer whose text is the same JSON as its structure.
func answered(write func(w *writer)) *answer { return &answer{text: write, structured: write} }

// listedAs returns an answer with a list as text, and with an object that has the list as a member
// as structure.
func listedAs(member string, write func(w *writer)) *answer {
	return &answer{text: write, structured: func(w *writer) {
		w.open('{')
		w.member(member)
		write(w)
		w.close('}')
	}}
}

// done returns an answer with a message of success.
func done(message string) *answer {
	return &answer{text: func(w *writer) { w.b = append(w.b, message...) }, structured: func(w *writer) {
		w.open('{')
		w.flag("success", true)
		w.text("message", message)
		w.close('}')
	}}
}
