package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/scratch"
	"github.com/varve-db/varve/served"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(scratch.Around(m)) }

// openStore opens a store; two of one folder are as two processes.
var openStore = fixture.Open

// client is a session with a server on the store.
type client struct {
	t *testing.T
	*mcp.ClientSession
	acknowledged chan struct{} // one for each subscription that the server has taken
}

// both has the tools of the reference server and of this one, with structured content.
var both = Options{Groups: []string{Graph, Memory}, Structured: true}

func connect(t *testing.T, st *varve.Store, o Options, co *mcp.ClientOptions) *client {
	t.Helper()
	if o.Groups == nil {
		o.Groups = both.Groups
	}
	o.Structured = true
	a, b := mcp.NewInMemoryTransports()
	ss, err := New(served.Only(st), o).Connect(t.Context(), a, nil)
	if err != nil {
		t.Fatal(err)
	}
	acknowledged := make(chan struct{}, 100)
	mc := mcp.NewClient(&mcp.Implementation{Name: "test"}, co)
	mc.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			if method == "notifications/subscriptions/acknowledged" {
				acknowledged <- struct{}{}
			}
			return next(ctx, method, r)
		}
	})
	cs, err := mc.Connect(t.Context(), b, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cs.Close()
		_ = ss.Wait()
	})
	return &client{t, cs, acknowledged}
}

// call gives the text and the structured content of an answer.
func (c *client) call(tool string, args any) (text string, structured any, isError bool) {
	c.t.Helper()
	if s, ok := args.(string); ok {
		args = json.RawMessage(s)
	}
	r, err := c.CallTool(c.t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		c.t.Fatalf("%s %v: %v", tool, args, err)
	}
	for _, part := range r.Content {
		text += part.(*mcp.TextContent).Text
	}
	return text, r.StructuredContent, r.IsError
}

// want calls a tool, whose structured content must be this JSON.
func (c *client) want(tool string, args, structured string) {
	c.t.Helper()
	text, got, isError := c.call(tool, args)
	var want any
	if err := json.Unmarshal([]byte(structured), &want); err != nil {
		c.t.Fatal(err)
	}
	if isError || !reflect.DeepEqual(got, want) {
		c.t.Errorf("%s %s:\n got %v (%s)\nwant %v", tool, args, got, text, want)
	}
}

func (c *client) refuses(tool, args, part string) {
	c.t.Helper()
	if text, _, isError := c.call(tool, args); !isError || !strings.Contains(text, part) {
		c.t.Errorf("%s %s: %v %s, want an error with %q", tool, args, isError, text, part)
	}
}

const deleted = `{"success":true,"message":"%s deleted successfully"}`

func TestGraph(t *testing.T) {
	t.Parallel()
	st := openStore(t, t.TempDir(), nil)
	for _, bytes := range []int64{0, -1} { // kept in memory, and read from the store
		c := connect(t, st, Options{GraphBytes: bytes}, nil)
		c.want("read_graph", `{}`, `{"entities":[],"relations":[]}`)
		c.want("create_entities", `{"entities":[{"name":"Zoë","entityType":"person","observations":["likes ΣΊΣΥΦΟΣ"]},{"name":"Ada","entityType":"","observations":[]},{"name":"Zoë","entityType":"other","observations":["b"]}]}`,
			`{"entities":[{"name":"Zoë","entityType":"person","observations":["likes ΣΊΣΥΦΟΣ","b"]},{"name":"Ada","entityType":"","observations":[]}]}`)
		c.want("create_entities", `{"entities":[{"name":"Ada","entityType":"x","observations":["y"]}]}`, `{"entities":[]}`)
		c.want("create_relations", `{"relations":[{"from":"Zoë","to":"nobody","relationType":"seeks"},{"from":"Ada","to":"Zoë","relationType":"knows"},{"from":"x","to":"y","relationType":"z"}]}`,
			`{"relations":[{"from":"Zoë","to":"nobody","relationType":"seeks"},{"from":"Ada","to":"Zoë","relationType":"knows"},{"from":"x","to":"y","relationType":"z"}]}`)
		c.want("add_observations", `{"observations":[{"entityName":"Ada","contents":["a","a","b"]},{"entityName":"Ada","contents":["b","c"]}]}`,
			`{"results":[{"entityName":"Ada","addedObservations":["a","a","b"]},{"entityName":"Ada","addedObservations":["c"]}]}`)
		c.refuses("add_observations", `{"observations":[{"entityName":"Ada","contents":["lost?"]},{"entityName":"Eve","contents":["x"]}]}`, "Entity with name Eve not found")
		c.want("delete_observations", `{"deletions":[{"entityName":"Ada","observations":["a","no"]},{"entityName":"Eve","observations":["x"]}]}`, fmt.Sprintf(deleted, "Observations"))
		ada := `{"name":"Ada","entityType":"","observations":["b","c"]}`
		knows, seeks := `{"from":"Ada","to":"Zoë","relationType":"knows"}`, `{"from":"Zoë","to":"nobody","relationType":"seeks"}`
		zoe := `{"name":"Zoë","entityType":"person","observations":["likes ΣΊΣΥΦΟΣ","b"]}`
		c.want("open_nodes", `{"names":["Ada","Eve","Ada"]}`, `{"entities":[`+ada+`],"relations":[`+knows+`]}`)
		c.want("search_nodes", `{"query":"σίσυφος"}`, `{"entities":[`+zoe+`],"relations":[`+seeks+`,`+knows+`]}`)
		c.want("search_nodes", `{"query":"PERS"}`, `{"entities":[`+zoe+`],"relations":[`+seeks+`,`+knows+`]}`)
		c.want("search_nodes", `{"query":"b c"}`, `{"entities":[],"relations":[]}`)
		c.want("search_nodes", `{"query":""}`, `{"entities":[`+zoe+`,`+ada+`],"relations":[`+seeks+`,`+knows+`]}`)
		c.want("delete_entities", `{"entityNames":["Zoë","x","no","x"]}`, fmt.Sprintf(deleted, "Entities"))
		c.want("read_graph", `{}`, `{"entities":[`+ada+`],"relations":[]}`)
		c.want("create_relations", `{"relations":[`+knows+`]}`, `{"relations":[`+knows+`]}`)
		c.want("delete_relations", `{"relations":[`+knows+`,`+seeks+`,`+knows+`]}`, fmt.Sprintf(deleted, "Relations"))
		c.want("delete_entities", `{"entityNames":["Ada"]}`, fmt.Sprintf(deleted, "Entities"))
		c.want("read_graph", `{"more":1}`, `{"entities":[],"relations":[]}`)
	}
}

// A bad argument is an answer, in the words of the reference server.
func TestRefusals(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	c := connect(t, openStore(t, t.TempDir(), nil), Options{}, nil)
	const bad = "MCP error -32602: Input validation error: Invalid arguments for tool "
	c.refuses("create_entities", `{}`, bad+"create_entities: Invalid input: expected array, received undefined at entities")
	c.refuses("create_entities", `{"entities":[{"name":"small","entityType":"t","observations":[]},{"name":"large","entityType":"t","observations":["`+strings.Repeat("x", 9<<20)+`"]}]}`,
		"too large (limit: 16777216 bytes of JSON); nothing was changed: write less text into one memory or "+
			"entity, or divide the text among several")
	c.want("open_nodes", `{"names":["small"]}`, `{"entities":[],"relations":[]}`)
	c.refuses("create_entities", `{"entities":[{"name":1,"observations":["a",null]},5]}`, bad+"create_entities: "+
		"Invalid input: expected string, received number at entities[0].name\nInvalid input: expected string, received undefined at entities[0].entityType\n"+
		"Invalid input: expected string, received null at entities[0].observations[1]\nInvalid input: expected object, received number at entities[1]")
	c.refuses("recall", `{"query":"x","limit":1.5}`, "Invalid input: expected int, received number at limit")
	c.refuses("recall", `{"query":"x","limit":"ten"}`, `limit: expected a whole number, received "ten"`)
	c.refuses("recall", `{"query":"x","limit":1e300}`, "Invalid input: expected int, received number at limit")
	c.refuses("recall", `{"query":"x","limit":1e400}`, "Invalid input: expected int, received number at limit")
	c.refuses("recall", `{"query":"x","limit":1e3}`, "Too big: expected number to be <=100 at limit")
	c.want("recall", `{"query":"x","limit":10.0,"max_chars":1e3}`, `{"memories":[],"by":"words"}`)
	c.refuses("recall", `{"query":"x","cursor":"words 1048576"}`, "must be the cursor that the previous page returned")
	c.refuses("recall", `{"query":"x","limit":0}`, "Too small: expected number to be >=1 at limit")
	c.refuses("recall", `{"query":"x","by":"luck"}`, `Invalid option: expected one of "both"|"meaning"|"words" at by`)
	c.refuses("recall", `{"query":"x","by":"meaning"}`, "needs an embedder")
	c.refuses("recall", `{"query":" "}`, "empty")
	c.refuses("recall", `{"query":"x","since":"tomorow"}`, `since: "tomorow" is not a time: write a day`)
	c.refuses("recall", `{"query":"x","where":["=x"]}`, "write source=desk")
	c.refuses("recall", `{"query":"x","cursor":"x"}`, "that the previous page returned")
	c.refuses("recent", `{"cursor":"*"}`, "that the previous page returned")
	c.refuses("remember", `{"text":"\n"}`, "nothing to remember")
	c.refuses("forget", `{"ids":["entity:x"]}`, "delete_entities")
	if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "read_graph", Arguments: []int{1}}); err == nil || !strings.Contains(err.Error(), "expected record, received array") {
		t.Error(err)
	}
	c.want("read_graph", `{}`, `{"entities":[],"relations":[]}`)
}

// The tools are told to clients exactly as the reference server tells of them.
func TestToolsAreTheReferences(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(proofs.SharedData(t, "server-memory-tools.json"))
	if err != nil {
		t.Fatal(err)
	}
	var want struct{ Tools []any }
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	var got []any
	for _, tool := range graphTools() {
		var v any
		if err := json.Unmarshal(tool.json(), &v); err != nil {
			t.Fatalf("%s: %v\n%s", tool.name, err, tool.json())
		}
		got = append(got, v)
	}
	if !reflect.DeepEqual(got, want.Tools) {
		t.Errorf("got %v\nwant %v", got, want.Tools)
	}
	// And the SDK has the same as what is listed.
	for _, tool := range append(graphTools(), memoryTools()...) {
		var listed, declared map[string]any
		own, err := json.Marshal(tool.declaration())
		if err := errorsJoin(err, json.Unmarshal(own, &declared), json.Unmarshal(tool.json(), &listed)); err != nil {
			t.Fatal(err)
		}
		delete(listed, "execution")
		if tool.title == "" { // hints that are as by default are omitted, and the dialect of the schema
			delete(listed, "annotations")
			delete(declared, "annotations")
			for _, name := range []string{"inputSchema", "outputSchema"} {
				if schema, ok := declared[name].(map[string]any); ok {
					delete(schema, "$schema")
				}
			}
		}
		if !reflect.DeepEqual(listed, declared) {
			t.Errorf("%v\n%v", listed, declared)
		}
	}
}

func errorsJoin(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// What many processes add at once to one entity is there, all of it.
func TestConcurrentObservations(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const processes, calls = 4, 25
	var all sync.WaitGroup
	first := connect(t, openStore(t, dir, nil), Options{}, nil)
	first.call("create_entities", `{"entities":[{"name":"hub","entityType":"t","observations":[]}]}`)
	for p := range processes {
		c := connect(t, openStore(t, dir, nil), Options{}, nil)
		for i := range calls {
			all.Go(func() {
				args := fmt.Sprintf(`{"observations":[{"entityName":"hub","contents":["%d of %d"]}]}`, i, p)
				if text, _, isError := c.call("add_observations", args); isError {
					t.Error(text)
				}
			})
		}
	}
	all.Wait()
	_, graph, _ := first.call("read_graph", `{}`)
	hub := graph.(map[string]any)["entities"].([]any)[0].(map[string]any)
	if n := len(hub["observations"].([]any)); n != processes*calls {
		t.Fatalf("%d observations of %d are there", n, processes*calls)
	}
}

// In the commit that deletes an entity go all relations that are there at that moment,
// also those that others have just made.
func TestDeletesTakeEveryRelation(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stores := []*varve.Store{openStore(t, dir, nil), openStore(t, dir, nil)}
	from := stores[0].Admin().Stats().Durable
	ctx, stop := context.WithCancel(t.Context())
	var makers sync.WaitGroup
	for k, from := range []string{"hub", strings.Repeat("hub", 300), "another", "a third"} {
		maker := connect(t, stores[1-k%2], Options{Groups: []string{Graph}}, nil)
		makers.Go(func() { // and never pauses
			for i := 0; ctx.Err() == nil; i++ {
				to := "hub"
				if k > 1 {
					to = fmt.Sprint(i)
				}
				maker.call("create_relations", fmt.Sprintf(`{"relations":[{"from":%q,"to":%q,"relationType":"%d"}]}`, from, to, i))
			}
		})
	}
	c := connect(t, stores[0], Options{Groups: []string{Graph}}, nil)
	for range 50 {
		c.call("create_entities", `{"entities":[{"name":"hub","entityType":"t","observations":[]}]}`)
		time.Sleep(2 * time.Millisecond)
		if text, _, isError := c.call("delete_entities", `{"entityNames":["hub"]}`); isError {
			t.Error(text)
		}
	}
	stop()
	makers.Wait()
	alive, deletes, gone := map[string]bool{}, 0, false
	for c, err := range stores[0].Admin().Changes(t.Context(), from) {
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case c.ID == "entity:hub":
			gone = c.Deleted
		case c.Deleted:
			delete(alive, c.ID)
		case !strings.Contains(c.Memory.Content, "hub"):
		default:
			alive[c.ID] = true
		}
		if gone && !c.More {
			if deletes++; len(alive) > 0 {
				t.Fatalf("deletion %d, at %d, left %v", deletes, c.LSN, alive)
			}
			gone = false
		}
	}
	if deletes != 50 {
		t.Errorf("%d deletions", deletes)
	}
}

// The graph that is kept in memory and the store say the same, whatever several
// processes do, and answers are in the order of creation.
func TestViewIsTheStore(t *testing.T) {
	t.Parallel()
	seed := proofs.Seed(t, 0)
	r := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	stores := []*varve.Store{openStore(t, dir, &varve.Options{SegmentSize: 64 << 10}), openStore(t, dir, nil)}
	clients := []*client{
		connect(t, stores[0], Options{}, nil), connect(t, stores[1], Options{}, nil),
		connect(t, stores[1], Options{GraphBytes: -1}, nil), connect(t, stores[0], Options{GraphBytes: 4000}, nil),
	}
	name := func() string { return string(rune('a' + r.IntN(8))) }
	var order []string // of creation
	steps := 300
	if !proofs.Long() {
		steps = 60
	}
	for step := range steps {
		c := clients[r.IntN(len(clients))]
		switch n := name(); r.IntN(6) {
		case 0, 1:
			c.call("create_entities", fmt.Sprintf(`{"entities":[{"name":%q,"entityType":"t","observations":["%d"]}]}`, n, step))
			if !slices.Contains(order, n) {
				order = append(order, n)
			}
		case 2:
			c.call("create_relations", fmt.Sprintf(`{"relations":[{"from":%q,"to":%q,"relationType":"r"}]}`, n, name()))
		case 3:
			c.call("add_observations", fmt.Sprintf(`{"observations":[{"entityName":%q,"contents":["%d"]}]}`, n, step))
		case 4:
			c.call("delete_entities", fmt.Sprintf(`{"entityNames":[%q]}`, n))
			order = slices.DeleteFunc(order, func(o string) bool { return o == n })
		case 5:
			c.call("delete_relations", fmt.Sprintf(`{"relations":[{"from":%q,"to":%q,"relationType":"r"}]}`, n, name()))
		}
		if step%50 == 0 {
			if err := stores[r.IntN(2)].Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for _, q := range []struct{ tool, args string }{{"read_graph", `{}`}, {"search_nodes", `{"query":"1"}`}, {"open_nodes", `{"names":["a","b"]}`}} {
			want, structured, _ := clients[0].call(q.tool, q.args)
			for i, c := range clients[1:] {
				if got, _, _ := c.call(q.tool, q.args); got != want {
					t.Fatalf("step %d, %s: client %d has\n%s\nthe first\n%s", step, q.tool, i+1, got, want)
				}
			}
			if q.tool == "read_graph" {
				var names []string
				for _, e := range structured.(map[string]any)["entities"].([]any) {
					names = append(names, e.(map[string]any)["name"].(string))
				}
				if !slices.Equal(names, order) {
					t.Fatalf("step %d: %v, want %v", step, names, order)
				}
			}
		}
	}
}

// Subscribers hear of what any process does, and nobody is left behind.
func TestSubscription(t *testing.T) {
	dir := t.TempDir()
	told := make(chan string, 100)
	here := connect(t, openStore(t, dir, nil), Options{}, &mcp.ClientOptions{
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { told <- r.Params.URI },
	})
	other := connect(t, openStore(t, dir, nil), Options{}, nil)
	if err := here.Subscribe(t.Context(), &mcp.SubscribeParams{URI: resourceURI}); err != nil {
		t.Fatal(err)
	}
	<-here.acknowledged // this SDK's Subscribe does not wait for it
	hear := func(what string) {
		t.Helper()
		select {
		case uri := <-told:
			if uri != resourceURI {
				t.Fatal(uri)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: nothing was told", what)
		}
	}
	other.call("create_entities", `{"entities":[{"name":"a","entityType":"t","observations":[]}]}`)
	hear("another process")
	here.call("delete_entities", `{"entityNames":["a"]}`)
	hear("its own")
	other.call("remember", `{"text":"no part of the graph"}`)
	time.Sleep(100 * time.Millisecond)
	if len(told) > 0 {
		t.Error("told of what is not of the graph")
	}
	if err := here.Unsubscribe(t.Context(), &mcp.UnsubscribeParams{URI: resourceURI}); err != nil {
		t.Fatal(err)
	}
	for i := 0; ; i++ { // nor its Unsubscribe, and the end of one is not acknowledged
		other.call("create_entities", fmt.Sprintf(`{"entities":[{"name":"b%d","entityType":"t","observations":[]}]}`, i))
		time.Sleep(100 * time.Millisecond)
		if len(told) == 0 {
			break
		}
		for len(told) > 0 {
			<-told
		}
		if i > 50 {
			t.Fatal("told after the end of the subscription")
		}
	}
	// Once more, and the session ends without a word: goleak sees whether all ends.
	if err := here.Subscribe(t.Context(), &mcp.SubscribeParams{URI: resourceURI}); err != nil {
		t.Fatal(err)
	}
	r, err := here.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: resourceURI})
	if err != nil || len(r.Contents) != 1 || r.Contents[0].MIMEType != "application/json" || !strings.Contains(r.Contents[0].Text, `"name": "b0"`) {
		t.Error(r, err)
	}
	if _, err := here.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "memory://other"}); err == nil || !strings.Contains(err.Error(), "Resource memory://other not found") {
		t.Error(err)
	}
}

func TestLower(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"ABC": "abc", "ΟΔΟΣ": "οδος", "ΟΔΟΣ ΣΑΣ": "οδος σας", "Σ": "σ", "İ": "i̇", "AΣ'": "aς'", "AΣ'B": "aσ'b", "1Σ": "1σ", "ẞÉ": "ßé",
	} {
		if got := lower(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}
