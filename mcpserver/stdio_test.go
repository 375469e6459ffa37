package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/served"
)

const hello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
`

// serve runs a session over the lines and gives the answers by id.
func serve(t *testing.T, st *varve.Store, in io.Reader) map[float64]map[string]any {
	t.Helper()
	var out bytes.Buffer
	if err := New(served.Only(st), both).Run(t.Context(), Stdio(in, &out, nil)); err != nil {
		t.Fatal(err)
	}
	answers := map[float64]map[string]any{}
	for line := range strings.Lines(out.String()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if id, ok := m["id"].(float64); ok {
			if answers[id] != nil {
				t.Errorf("call %v is answered twice", id)
			}
			answers[id] = m
		}
	}
	return answers
}

// Everything that came in before the end of the input is answered, and durable.
func TestEndOfInput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st := openStore(t, dir, nil)
	var in strings.Builder
	in.WriteString(hello)
	const n = 200
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"create_entities","arguments":{"entities":[{"name":"e%d","entityType":"t","observations":[]}]}}}`, i, i)
		if i < n {
			in.WriteByte('\n') // the last one has no end
		}
	}
	answers := serve(t, st, strings.NewReader(in.String()))
	for i := 1; i <= n; i++ {
		if a := answers[float64(i)]; a == nil || a["error"] != nil || a["result"].(map[string]any)["isError"] != nil {
			t.Fatalf("call %d: %v", i, a)
		}
	}
	if m, err := openStore(t, dir, nil).Count(t.Context()); m != n || err != nil {
		t.Error(m, err)
	}
}

// A client need not wait for an answer before it sends what depends on it.
func TestDependentCalls(t *testing.T) {
	t.Parallel()
	var in strings.Builder
	in.WriteString(hello)
	id := 0
	want := map[float64]string{}
	call := func(tool, args, holds string) {
		id++
		fmt.Fprintf(&in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`+"\n", id, tool, args)
		want[float64(id)] = holds
	}
	for i := range 40 {
		e := fmt.Sprintf(`"e%d"`, i)
		call("create_entities", `{"entities":[{"name":`+e+`,"entityType":"t","observations":[]}]}`, e)
		call("add_observations", `{"observations":[{"entityName":`+e+`,"contents":["o"]}]}`, `"o"`)
		call("open_nodes", `{"names":[`+e+`]}`, `"o"`)
		call("create_relations", `{"relations":[{"from":`+e+`,"to":"hub","relationType":"r"}]}`, `"hub"`)
		call("delete_entities", `{"entityNames":[`+e+`]}`, "deleted")
		call("open_nodes", `{"names":["hub"]}`, `"relations": []`)
		call("create_entities", `{"entities":[{"name":`+e+`,"entityType":"t","observations":["new"]}]}`, "new")
		if i%8 == 0 {
			call("read_graph", `{}`, "new")
			says := map[bool]string{true: "replaced the memory", false: "remembered"}[i > 0]
			call("remember", fmt.Sprintf(`{"text":"first %d","key":"k"}`, i), says)
			call("remember", fmt.Sprintf(`{"text":"second %d","key":"k"}`, i), "replaced the memory that had the key")
			call("recall", fmt.Sprintf(`{"query":"second %d"}`, i), fmt.Sprintf("second %d", i))
		}
	}
	call("search_nodes", `{"query":"e"}`, `"relations": []`)
	for id, a := range serve(t, openStore(t, t.TempDir(), nil), strings.NewReader(in.String())) {
		if id == 0 {
			continue
		}
		text, _ := json.Marshal(a)
		r, _ := a["result"].(map[string]any)
		if r == nil || r["isError"] != nil {
			t.Errorf("call %v: %s", id, text)
		} else if got := r["content"].([]any)[0].(map[string]any)["text"].(string); !strings.Contains(got, want[id]) {
			t.Errorf("call %v: %s, and not %s", id, got, want[id])
		}
		delete(want, id)
	}
	if delete(want, 0); len(want) > 0 {
		t.Errorf("%d calls were not answered", len(want))
	}
}

// orderTest asks an order by hand.
type orderTest struct {
	*testing.T
	order
}

func (o *orderTest) call(id int64, params string) jsonrpc.ID {
	o.Helper()
	i, err := jsonrpc.MakeID(float64(id))
	if err != nil {
		o.Fatal(err)
	}
	if !o.add(&jsonrpc.Request{ID: i, Method: "tools/call", Params: json.RawMessage(params)}) {
		o.Fatal(params)
	}
	return i
}

// runs says that these may run now, and no other.
func (o *orderTest) runs(want ...jsonrpc.ID) {
	o.Helper()
	for _, id := range want {
		if r := o.next(); r == nil || r.ID != id {
			o.Fatalf("%v, and not %v", r, id)
		}
	}
	if r := o.next(); r != nil {
		o.Fatalf("%v", r)
	}
}

// delete_entities takes relations along whose other ends it does not name: who asks for
// one of these waits.
func TestOpenBehindDelete(t *testing.T) {
	t.Parallel()
	o := &orderTest{T: t}
	one := o.call(1, `{"name":"delete_entities","arguments":{"entityNames":["a"]}}`)
	two := o.call(2, `{"name":"open_nodes","arguments":{"names":["hub"]}}`)
	three := o.call(3, `{"name":"create_entities","arguments":{"entities":[{"name":"c"}]}}`)
	four := o.call(4, `{"name":"delete_entities","arguments":{"entityNames":["b"]}}`)
	o.runs(one, three)
	o.answered(one)
	o.runs(two)
	o.answered(two)
	o.runs(four)
}

// A call that is given up while it waits for its turn never runs; those behind it do.
func TestCancelledInLine(t *testing.T) {
	t.Parallel()
	o := &orderTest{T: t}
	add, next := o.call, o.runs
	one := add(1, `{"name":"create_entities","arguments":{"entities":[{"name":"a"}]}}`)
	two := add(2, `{"name":"add_observations","arguments":{"observations":[{"entityName":"a"}]}}`)
	three := add(3, `{"name":"create_relations","arguments":{"relations":[{"from":"b","to":"a"}]}}`)
	four := add(4, `{"name":"create_entities","arguments":{"entities":[{"name":"c"}]}}`)
	five := add(5, `{"name":"read_graph"}`)
	six := add(6, `{"name":"search_nodes","arguments":{"query":"x"}}`)
	next(one, four)
	o.cancelled(two)
	next()
	o.answered(one)
	next(three)
	o.answered(four)
	o.answered(three)
	next(five, six)
	if o.waits() {
		t.Error("nothing waits")
	}
}

// A call that is given up while it runs gets no answer any more; the others do.
func TestCancelledIsNotAnswered(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_graph"}}
{"jsonrpc":"2.0","id":"two","method":"ping"}
{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
`)
	c, err := Stdio(in, &out, nil).Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	answerProbe(t, c)
	var calls []*jsonrpc.Request
	for range 3 {
		m, err := c.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if r := m.(*jsonrpc.Request); r.IsCall() {
			calls = append(calls, r)
		} else if got, want := string(r.Params), fmt.Sprintf(`{"requestId":%v}`, calls[0].ID.Raw()); got != want {
			t.Errorf("cancelled: %s, not %s", got, want) // by the number that the SDK has for the id
		}
	}
	for _, r := range calls {
		if err := c.Write(t.Context(), &jsonrpc.Response{ID: r.ID, Result: json.RawMessage(`{}`)}); err != nil {
			t.Fatal(err)
		}
	}
	if got := out.String(); len(calls) != 2 || got != `{"jsonrpc":"2.0","id":"two","result":{}}`+"\n" {
		t.Errorf("%d calls: %s", len(calls), got)
	}
	if _, err := c.Read(t.Context()); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

// What is no message is passed over, however long; what the client gave up, or
// listens to for ever, does not hold up the end.
func TestOddLines(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	long := io.MultiReader(strings.NewReader(hello+`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"`), io.LimitReader(endless{}, MaxLine), strings.NewReader(`"}}
not json
[]
{"jsonrpc":"2.0"}

{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"read_graph","arguments":"x"}}
{"jsonrpc":"2.0","id":3,"method":"tools/call"}
{"jsonrpc":"2.0","id":4,"method":"no/such"}
{"jsonrpc":"2.0","id":5,"method":"resources/subscribe","params":{"uri":"memory://knowledge-graph"}}
{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}
{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}
{"jsonrpc":"2.0","id":6,"method":"ping"}
`+"\xff\xfe\n\x00\n"+strings.Repeat("[", 5000)+"\n"+`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"read_graph"}}`))
	answers := serve(t, openStore(t, t.TempDir(), nil), long)
	for id, isError := range map[float64]bool{0: false, 2: true, 3: true, 4: true, 5: false, 6: false, 7: false} {
		if a := answers[id]; a == nil || (a["error"] != nil) != isError {
			t.Errorf("call %v: %v", id, a)
		}
	}
	if e, _ := answers[1]["error"].(map[string]any); e == nil || !strings.Contains(fmt.Sprint(e["message"]), "a message of more than 67108864 bytes was not processed") {
		t.Errorf("a message beyond the limit: %v", answers[1])
	}
}

// Of a message that is too long the id of a call is known, wherever it stands, and nothing
// else is taken for one.
func TestIDOfALongMessage(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]any{
		`{"jsonrpc":"2.0","id":1,"method":"m","params":{"id":2,"x":["id",{"id":3}]}}`:                        int64(1),
		`{"method":"m","params":{"id":2,"a":"}\",\"id\":4,\\"},"jsonrpc":"2.0", "id" : "a\"\u0062" }`:        `a"b`,
		`{"method":"tools/call","params":{"x":"` + strings.Repeat("y", 1000) + `"},"jsonrpc":"2.0","id":70}`: int64(70),
		`{"id":1,"result":{"method":"m"}}`:                        nil,
		`{"method":"m","params":{"id":1}}`:                        nil,
		`{"method":"m","id":null}`:                                nil,
		`{"method":"m","id":{"a":1}}`:                             nil,
		`{"method":"m","id":"` + strings.Repeat("i", 1000) + `"}`: nil,
		`{"` + strings.Repeat("i", 1000) + `":1,"method":"m","i`:  nil,
		`[{"method":"m","id":1}]`:                                 nil,
		`}}}],,::"id":1,"method":"m"}`:                            nil,
		``:                                                        nil,
	} {
		var l long
		l.read([]byte(text))
		id, ok := l.call()
		if ok != (want != nil) || ok && id.Raw() != want {
			t.Errorf("%.100s: %v %v, want %v", text, id.Raw(), ok, want)
		}
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// A server that is told to end does so although the client says nothing more.
func TestEndByContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	in, send := io.Pipe()
	receive, out := io.Pipe()
	ended := make(chan error)
	go func() { ended <- New(served.Only(openStore(t, t.TempDir(), nil)), both).Run(ctx, Stdio(in, out, nil)) }()
	if _, err := io.WriteString(send, hello); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(receive).ReadString('\n'); err != nil || !strings.Contains(line, `"serverInfo"`) {
		t.Fatal(line, err)
	}
	cancel()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Fatal("it goes on")
	}
	_ = send.Close()
}
