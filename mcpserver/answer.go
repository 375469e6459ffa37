package mcpserver

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// answer is the result of a tool: as text for people and models, as JSON for programs. It is encoded only when
// it is sent, so that a large answer needs no memory in addition to the data that it shows.
type answer struct {
	text       func(*writer)
	structured func(*writer)
	image      *mcp.ImageContent // sent after the text; nil: there is no image
}

// maxAnswer is the maximum size in bytes of the answer to a query, as JSON with text and structured content. Clients
// accept answers of about this size. For a call that changes data, the limit does not apply: its answer is always
// complete.
const maxAnswer = 32 << 20

// smallAnswer is the size in bytes up to which an answer is passed through the SDK. A larger answer bypasses the SDK
// (see aside).
const smallAnswer = 32 << 10

// largeError means that an answer is larger than maxAnswer.
type largeError struct{ advice string }

func (e *largeError) Error() string {
	return fmt.Sprintf("the answer is larger than the %d bytes that one answer may be: %s", maxAnswer, e.advice)
}

// tooMuchError returns the error for a call that would load too much data. The error advises how to request less
// data from the tool.
func tooMuchError(tool string) error {
	switch tool {
	case "read_graph":
		return &largeError{"read it in parts, with search_nodes or open_nodes"}
	case "search_nodes":
		return &largeError{"use a more specific query, or open_nodes"}
	case "open_nodes":
		return &largeError{"name fewer entities in one call"}
	}
	return &largeError{"request less in one call"}
}

// write calls f with a writer that passes its output to the function sink, in pieces. If pretty is false, the JSON has
// no white space. If f is nil, write does nothing.
func (a *answer) write(f func(*writer), pretty bool, sink func([]byte)) {
	if f == nil {
		return
	}
	w := writer{pretty: pretty, sink: sink}
	f(&w)
	sink(w.b)
}

// size returns the length of the answer as JSON, in bytes.
func (a *answer) size() int {
	n := 0
	a.write(a.text, true, func(b []byte) { n += escapedLen(b) })
	a.write(a.structured, false, func(b []byte) { n += len(b) })
	return n
}

// result returns the result of a call for the SDK, or an error result if the answer is too large. On a connection of
// Stdio, the result has a placeholder for each part of a large answer. Stdio puts the answer in the place of the
// placeholders when it writes the message.
func (a *answer) result(t *tool, extra *mcp.RequestExtra) *mcp.CallToolResult {
	if t.out == nil {
		a = &answer{text: a.text, image: a.image}
	}
	n := a.size()
	if n > maxAnswer && t.hints.readOnly {
		return failed(tooMuchError(t.name).Error())
	}
	if a.image != nil && n+base64.StdEncoding.EncodedLen(len(a.image.Data)) > maxAnswer {
		return failed(tooMuchError(t.name).Error())
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

// ready returns a function that writes the bytes b in pieces.
func ready(b []byte) func(*writer) {
	return func(w *writer) {
		for part := range slices.Chunk(b, piece) {
			w.b = append(w.b, part...)
			w.pass()
		}
	}
}

// textAnswer returns an answer that consists of a text. The function structured writes the structured content, for
// hosts that set Options.Structured.
func textAnswer(text string, structured func(*writer)) *answer {
	return &answer{text: ready([]byte(text)), structured: structured}
}

// answered returns an answer in which the text and the structured content are the same JSON. The function write writes
// this JSON.
func answered(write func(w *writer)) *answer { return &answer{text: write, structured: write} }

// listedAs returns an answer with a list, which the function write writes. The text of the answer is the list; the
// structured content is an object that has the list in the given member.
func listedAs(member string, write func(w *writer)) *answer {
	return &answer{text: write, structured: func(w *writer) {
		w.open('{')
		w.member(member)
		write(w)
		w.close('}')
	}}
}

// done returns an answer with a message that the call has succeeded.
func done(message string) *answer {
	return &answer{text: func(w *writer) { w.b = append(w.b, message...) }, structured: func(w *writer) {
		w.open('{')
		w.flag("success", true)
		w.text("message", message)
		w.close('}')
	}}
}
