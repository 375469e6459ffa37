package mcpserver

import (
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
	n := a.size()
	if n > maxAnswer && t.hints.readOnly {
		return failed(less(t.name).Error())
	}
	if c := callOf(extra); c != nil && n > smallAnswer {
		c.answer = a
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: slotText}},
			StructuredContent: json.RawMessage(`"` + slotStructured + `"`)}
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(written(a.text, true))}},
		StructuredContent: json.RawMessage(written(a.structured, false))}
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

// answered returns an answer whose text is the same JSON as its structure.
func answered(write func(w *writer)) *answer { return &answer{write, write} }

// listedAs returns an answer with a list as text, and with an object that has the list as a member
// as structure.
func listedAs(member string, write func(w *writer)) *answer {
	return &answer{write, func(w *writer) {
		w.open('{')
		w.member(member)
		write(w)
		w.close('}')
	}}
}

// done returns an answer with a message of success.
func done(message string) *answer {
	return &answer{func(w *writer) { w.b = append(w.b, message...) }, func(w *writer) {
		w.open('{')
		w.flag("success", true)
		w.text("message", message)
		w.close('}')
	}}
}
