package mcpserver

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// answer is a tool's result: for people and models as text, for programs as JSON. It is
// written when it is sent: until then a large one takes no memory but that of what it tells.
type answer struct {
	text       func(*writer)
	structured func(*writer)
}

// maxAnswer is how large an answer to a question may be, as JSON with text and structure: what
// clients take, and what is not theirs to ask for without a choice. What a call has written
// is told whole.
const maxAnswer = 32 << 20

// smallAnswer is the largest that goes by way of the SDK.
const smallAnswer = 32 << 10

// largeError says that an answer is larger than maxAnswer.
type largeError struct{ advice string }

func (e *largeError) Error() string {
	return fmt.Sprintf("the answer is larger than the %d bytes that one answer may be: %s", maxAnswer, e.advice)
}

// less is how to ask a tool for less.
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

// write gives what f writes in pieces.
func (a *answer) write(f func(*writer), pretty bool, sink func([]byte)) {
	if f == nil {
		return
	}
	w := writer{pretty: pretty, sink: sink}
	f(&w)
	sink(w.b)
}

// size is how many bytes it is, as JSON.
func (a *answer) size() int {
	n := 0
	a.write(a.text, true, func(b []byte) { n += escapedLen(b) })
	a.write(a.structured, false, func(b []byte) { n += len(b) })
	return n
}

// result is the answer to a call, if it may be as large as it is. Of a large one it has slots
// where the answer comes, if it goes out by Stdio.
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

// ready is what is written already.
func ready(b []byte) func(*writer) {
	return func(w *writer) {
		for part := range slices.Chunk(b, piece) {
			w.b = append(w.b, part...)
			w.pass()
		}
	}
}

// answered has the same JSON in both.
func answered(write func(w *writer)) *answer { return &answer{write, write} }

// listedAs has a bare list as text, and as a member of an object for programs.
func listedAs(member string, write func(w *writer)) *answer {
	return &answer{write, func(w *writer) {
		w.open('{')
		w.member(member)
		write(w)
		w.close('}')
	}}
}

// done says that something was done.
func done(message string) *answer {
	return &answer{func(w *writer) { w.b = append(w.b, message...) }, func(w *writer) {
		w.open('{')
		w.flag("success", true)
		w.text("message", message)
		w.close('}')
	}}
}
