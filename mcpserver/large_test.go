package mcpserver

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/graph"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/served"
)

// stdioClient speaks lines with a server.
type stdioClient struct {
	t    *testing.T
	in   *io.PipeWriter
	out  *bufio.Reader
	last int
}

func speak(t *testing.T, st *varve.Store) *stdioClient {
	t.Helper()
	in, send := io.Pipe()
	receive, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- New(served.Only(st), both).Run(t.Context(), Stdio(in, out, nil)) }()
	c := &stdioClient{t: t, in: send, out: bufio.NewReader(receive)}
	t.Cleanup(func() {
		_ = send.Close()
		_ = receive.Close()
		<-ended
	})
	return c
}

// ask gives the members of an answer, and its line.
func (c *stdioClient) ask(method, params string) (map[string]json.RawMessage, string) {
	c.t.Helper()
	c.last++
	go fmt.Fprintf(c.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", c.last, method, params)
	line, err := c.out.ReadString('\n')
	if err != nil {
		c.t.Fatal(err)
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		c.t.Fatalf("%.200q: %v", line, err)
	}
	if string(m["id"]) != fmt.Sprint(c.last) {
		c.t.Fatalf("%.200q is no answer to %d", line, c.last)
	}
	return m, line
}

// hard is text that is hard to write, of n times 100 bytes or so.
func hard(n int) string {
	return strings.Repeat("é \" \\ \n \x00 \u2028 <&> 👩\u200d👧 "+strings.Repeat("plain", 10), n)
}

// Large arguments and answers go past the SDK; what comes of them is the same, in every
// version of the protocol.
func TestLargeIsTheSame(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	for _, version := range []string{"2024-11-05", "2025-06-18", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			st := openStore(t, t.TempDir(), nil)
			c, other := speak(t, st), connect(t, st, Options{}, nil)
			meta := ""
			if version < newProtocol {
				c.ask("initialize", `{"protocolVersion":"`+version+`","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`)
			} else {
				meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + version + `","io.modelcontextprotocol/clientCapabilities":{}},`
			}
			for _, n := range []int{1, 200, 700, 3_000} { // of small answers, of larger ones, of several pieces
				texts := []string{hard(n), strings.Repeat("x", n), hard(n)}
				entity := map[string]any{"name": fmt.Sprint(n), "entityType": "t", "observations": texts}
				args, _ := json.Marshal(map[string]any{"entities": []any{entity}})
				for _, call := range []struct{ tool, args string }{{"create_entities", string(args)}, {"open_nodes", fmt.Sprintf(`{"names":["%d"]}`, n)}, {"read_graph", `{}`}} {
					m, line := c.ask("tools/call", fmt.Sprintf(`{%s"name":%q,"arguments":%s}`, meta, call.tool, call.args))
					var r struct {
						Content           []struct{ Type, Text string }
						StructuredContent any
						IsError           bool
						ResultType        string
					}
					if err := json.Unmarshal(m["result"], &r); err != nil || r.IsError || len(r.Content) != 1 || strings.Contains(line, "varve: ") {
						t.Fatalf("%v: %.300s", err, line)
					}
					if (r.ResultType == "complete") != (version >= newProtocol) {
						t.Errorf("%s: %.300s", version, line)
					}
					if call.tool == "create_entities" {
						got := r.StructuredContent.(map[string]any)["entities"].([]any)[0].(map[string]any)["observations"].([]any)
						for i := range texts {
							if got[i] != texts[i] {
								t.Fatalf("observation %d of %d bytes came back as another", i, len(texts[i]))
							}
						}
						continue
					}
					text, structured, _ := other.call(call.tool, call.args)
					if r.Content[0].Text != text || !reflect.DeepEqual(r.StructuredContent, structured) {
						t.Errorf("%s of %d: not what another transport has", call.tool, n)
					}
				}
			}
			m, _ := c.ask("resources/read", `{`+meta+`"uri":"memory://knowledge-graph"}`)
			var r struct{ Contents []struct{ Text string } }
			if err := json.Unmarshal(m["result"], &r); err != nil {
				t.Fatal(err)
			}
			want, err := other.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: resourceURI})
			if err != nil || want.Contents[0].Text != r.Contents[0].Text {
				t.Error("the resource is not what another transport has", err)
			}
		})
	}
}

// An answer to a question that would be too large says how to ask for less; the others come
// whole.
func TestLargeAnswerIsRefused(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	for _, bytes := range []int64{0, -1} { // from memory, and from the store
		if bytes < 0 && !proofs.Long() {
			continue
		}
		st := openStore(t, t.TempDir(), nil)
		c := connect(t, st, Options{GraphBytes: bytes}, nil)
		for i := range 3 { // each byte takes 13 in the answer, \u0001 and \\u0001
			e := graph.Entity{Name: fmt.Sprint("e", i), Observations: []string{strings.Repeat("\x01", 900<<10)}}
			if _, err := st.Put(t.Context(), e.Memory(time.Unix(int64(i), 0), nil)); err != nil {
				t.Fatal(err)
			}
		}
		const large = "the answer is larger than the 33554432 bytes that one answer may be: "
		c.refuses("read_graph", `{}`, large+"read it in parts, with search_nodes or open_nodes")
		if !proofs.Long() {
			continue
		}
		c.refuses("search_nodes", `{"query":"e"}`, large+"use a more specific query, or open_nodes")
		c.refuses("open_nodes", `{"names":["e0","e1","e2"]}`, large+"name fewer entities in one call")
		whole := speak(t, st)
		whole.ask("initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`)
		if _, line := whole.ask("tools/call", `{"name":"open_nodes","arguments":{"names":["e0"]}}`); len(line) < 13*900<<10 {
			t.Errorf("one of them: %.200s", line)
		}
	}
	// What is found is not kept until it is counted.
	f, e := &found{}, &entity{}
	e.Observations = []string{strings.Repeat("x", 1<<20)}
	for range 40 {
		f.addEntity(e)
	}
	if !f.over || len(f.entities) > 0 {
		t.Errorf("%d are kept", len(f.entities))
	}
}

// Of a call that does not fit one thing is told for each fault, but not of a million faults.
func TestManyFaults(t *testing.T) {
	t.Parallel()
	c := connect(t, openStore(t, t.TempDir(), nil), Options{}, nil)
	text, _, isError := c.call("create_entities", `{"entities":[`+strings.Repeat("1,", 50_000)+`1]}`)
	if n := strings.Count(text, "Invalid input"); !isError || n != maxLines {
		t.Errorf("%d lines: %.200s", n, text)
	}
}
