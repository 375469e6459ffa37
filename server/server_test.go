package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/settings"
	"github.com/varve-db/varve/mcpserver"
	"github.com/varve-db/varve/memorystores"
	"github.com/varve-db/varve/served"
)

// site is a server that listens, for a test.
type site struct {
	t      *testing.T
	s      *Server
	st     *varve.Store
	held   *served.Store
	url    string
	tokens string
	log    *syncBuffer
	stop   func() error // ends the server, and returns what Serve did
	broken bool         // the test has damaged the store, so that closing it may fail
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// serving serves a new store with the tokens "all", "reader" and "graph", whose names are their secrets.
func serving(t *testing.T, change func(*Options)) *site {
	t.Helper()
	return servingHeld(t, func(o *Options, _ *served.Store) {
		if change != nil {
			change(o)
		}
	})
}

// servingHeld is serving with the holder of the store.
func servingHeld(t *testing.T, change func(*Options, *served.Store)) *site {
	t.Helper()
	return servingIn(t, filepath.Join(t.TempDir(), "s"), nil, change)
}

// servingIn is servingHeld with the folder and the options of the store.
func servingIn(t *testing.T, at string, options *varve.Options, change func(*Options, *served.Store)) *site {
	t.Helper()
	dir := t.TempDir()
	st, err := varve.Open(t.Context(), at, options)
	if err != nil {
		t.Fatal(err)
	}
	v := &site{t: t, st: st, tokens: filepath.Join(dir, "tokens.json"), log: &syncBuffer{}}
	for _, k := range []Token{{Name: "all"}, {Name: "reader", ReadOnly: true},
		{Name: "graph", Tools: []string{mcpserver.Graph}}} {
		k.Sum = SumOf(k.Name)
		if err := AddToken(t.Context(), v.tokens, k); err != nil {
			t.Fatal(err)
		}
	}
	tokens, err := OpenTokens(v.tokens)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Tokens: tokens, Logger: slog.New(slog.NewTextHandler(v.log, nil)),
		Tools: mcpserver.Options{Groups: []string{mcpserver.Graph, mcpserver.Memory}}}
	v.held = served.New(st, served.Options{Open: func(ctx context.Context) (*varve.Store, error) {
		return varve.Open(ctx, st.Admin().Stats().Dir, &varve.Options{MustExist: true})
	}})
	change(&o, v.held)
	if v.s, err = New(v.held, o); err != nil {
		t.Fatal(err)
	}
	v.start()
	t.Cleanup(func() {
		if err := v.stop(); err != nil {
			t.Error(err)
		}
		v.held.End()
		if err := v.st.Close(); err != nil && !errors.Is(err, varve.ErrReplaced) && !v.broken {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return v
}

// start serves on a free port.
func (v *site) start() (url string, stop func()) {
	v.t.Helper()
	return v.startOn(func(l net.Listener) net.Listener { return l })
}

// startOn is start with a listener that on makes.
func (v *site) startOn(on func(net.Listener) net.Listener) (url string, stop func()) {
	v.t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(v.t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		v.t.Fatal(err)
	}
	v.url = "http://" + l.Addr().String()
	ctx, cancel := context.WithCancel(v.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- v.s.Serve(ctx, on(l)) }()
	v.stop = sync.OnceValue(func() error { cancel(); return <-ended })
	return v.url, func() {
		if err := v.stop(); err != nil {
			v.t.Error(err)
		}
	}
}

// do sends a request with headers, "name: value" each.
func (v *site) do(method, path, body string, headers ...string) (status int, h http.Header, answer string) {
	v.t.Helper()
	req, err := http.NewRequestWithContext(v.t.Context(), method, v.url+path, strings.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		if name == "Host" {
			req.Host = value
		} else {
			req.Header.Add(name, value)
		}
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return res.StatusCode, res.Header, string(b)
}

var mcpHeaders = []string{"Content-Type: application/json", "Accept: application/json, text/event-stream"}

// call calls a method of MCP as the holder of a token.
func (v *site) call(token, method, params string, headers ...string) (status int, answer string) {
	v.t.Helper()
	headers = append(append(headers, mcpHeaders...), "Authorization: Bearer "+token)
	status, _, answer = v.do("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`,
		headers...)
	return status, answer
}

func (v *site) tool(token, name, args string) (status int, answer string) {
	v.t.Helper()
	return v.call(token, "tools/call", `{"name":"`+name+`","arguments":`+args+`}`)
}

// Which requests get how far.
func TestGuard(t *testing.T) {
	t.Parallel()
	v := serving(t, func(o *Options) { o.Hosts = []string{"memory.example"} })
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`
	ok := append([]string{"Authorization: Bearer all"}, mcpHeaders...)
	for _, c := range []struct {
		what, method, path string
		headers            []string
		status             int
	}{
		{"a token", "POST", "/mcp", ok, 200},
		{"x-api-key", "POST", "/mcp", append([]string{"x-api-key: all"}, mcpHeaders...), 200},
		{"a lower-case scheme", "POST", "/mcp", append([]string{"Authorization: bearer all"}, mcpHeaders...), 200},
		{"no token", "POST", "/mcp", mcpHeaders, 401},
		{"an empty token", "POST", "/mcp", append([]string{"Authorization: Bearer "}, mcpHeaders...), 401},
		{"another scheme", "POST", "/mcp", append([]string{"Authorization: Basic all"}, mcpHeaders...), 401},
		{"a wrong token", "POST", "/mcp", append([]string{"Authorization: Bearer alL"}, mcpHeaders...), 401},
		{"its sum", "POST", "/mcp", append([]string{"Authorization: Bearer " + hexOf("all")}, mcpHeaders...), 401},
		{"in the query", "POST", "/mcp?token=all&access_token=all", mcpHeaders, 401},
		{"GET of a session", "GET", "/mcp", ok, 405},
		{"DELETE of a session", "DELETE", "/mcp", ok, 405},
		{"no path", "GET", "/", nil, 404},
		{"another path", "GET", "/mcp/../../etc/passwd", ok, 404},
		{"an escaped path", "GET", "/..%2f..%2fetc%2fpasswd", ok, 404},
		{"no metrics", "GET", "/metrics", ok, 404},
		{"alive", "GET", "/healthz", nil, 200},
		{"ready", "GET", "/readyz", nil, 200},
		{"alive is not posted", "POST", "/healthz", nil, 405},
		{"metadata", "GET", metadataPath, nil, 200},
		{"its own name", "POST", "/mcp", append([]string{"Host: memory.example"}, ok...), 200},
		{"its own name with a port", "POST", "/mcp", append([]string{"Host: Memory.Example:443"}, ok...), 200},
		{"localhost", "POST", "/mcp", append([]string{"Host: localhost:80"}, ok...), 200},
		{"IPv6", "POST", "/mcp", append([]string{"Host: [::1]:80"}, ok...), 200},
		{"rebound", "POST", "/mcp", append([]string{"Host: evil.example"}, ok...), 403},
		{"rebound to alive", "GET", "/healthz", []string{"Host: evil.example:7717"}, 403},
		{"looks like loopback", "POST", "/mcp", append([]string{"Host: 127.0.0.1.evil.example"}, ok...), 403},
		{"its own origin", "POST", "/mcp", append([]string{"Host: localhost:1", "Origin: http://localhost:1"}, ok...), 200},
		{"another origin", "POST", "/mcp", append([]string{"Origin: https://evil.example"}, ok...), 403},
		{"another port", "POST", "/mcp", append([]string{"Host: localhost:1", "Origin: http://localhost:2"}, ok...), 403},
		{"no origin that is one", "POST", "/mcp", append([]string{"Origin: null"}, ok...), 403},
		{"two origins", "POST", "/mcp", append([]string{"Host: localhost", "Origin: http://localhost",
			"Origin: http://evil.example"}, ok...), 403},
		{"a page elsewhere", "POST", "/mcp", append([]string{"Sec-Fetch-Site: cross-site"}, ok...), 403},
		{"a probe of CORS", "OPTIONS", "/mcp",
			[]string{"Origin: https://evil.example", "Access-Control-Request-Method: POST"}, 403},
		{"a probe of CORS from here", "OPTIONS", "/mcp",
			append([]string{"Host: localhost", "Origin: http://localhost"}, ok...), 405},
	} {
		status, h, answer := v.do(c.method, c.path, list, c.headers...)
		if status != c.status {
			t.Errorf("%s: %d %s", c.what, status, answer)
		}
		for name := range h {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("%s: the answer has %s", c.what, name)
			}
		}
		if status == 401 && !strings.Contains(h.Get("WWW-Authenticate"), v.url+metadataPath) {
			t.Errorf("%s: WWW-Authenticate: %s", c.what, h.Get("WWW-Authenticate"))
		}
	}
	if log := v.log.String(); strings.Contains(log, "passwd") || strings.Contains(log, "access_token") {
		t.Errorf("the log has what a client sent:\n%s", log)
	}
}

// A token allows what it says, and history shows its name.
func TestTokenRestricts(t *testing.T) {
	t.Parallel()
	v := serving(t, nil)
	has := func(token, tool string) bool {
		status, answer := v.call(token, "tools/list", "{}")
		if status != 200 {
			t.Fatal(status, answer)
		}
		return strings.Contains(answer, `"name":"`+tool+`"`)
	}
	for _, c := range []struct {
		token, tool string
		want        bool
	}{
		{"all", "remember", true}, {"all", "create_entities", true}, {"reader", "recall", true},
		{"reader", "remember", false},
		{"reader", "read_graph", true}, {"graph", "create_entities", true}, {"graph", "remember", false},
		{"graph", "recall", false},
	} {
		if got := has(c.token, c.tool); got != c.want {
			t.Errorf("%s has %s: %t", c.token, c.tool, got)
		}
	}
	for _, c := range []struct{ token, tool, args, says string }{
		{"all", "remember", `{"text":"written over HTTP"}`, ""},
		{"reader", "remember", `{"text":"never"}`, "not found"},
		{"reader", "delete_entities", `{"entityNames":["x"]}`, "not found"},
		{"reader", "recall", `{"query":"HTTP"}`, "written over HTTP"},
		{"graph", "recall", `{"query":"HTTP"}`, "not found"},
	} {
		if status, answer := v.tool(c.token, c.tool, c.args); status != 200 || !strings.Contains(answer, c.says) {
			t.Errorf("%s %s: %d %s", c.token, c.tool, status, answer)
		}
	}
	for commit, err := range v.st.Log(t.Context(), varve.LogOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if commit.Writer.Token != "all" {
			t.Errorf("written by %+v", commit.Writer)
		}
	}
}

// A token reaches its project and the shared part; undo takes back what its holder wrote, though each request is a
// session of its own.
func TestTokenHasProject(t *testing.T) {
	t.Parallel()
	v := serving(t, nil)
	for name, digit := range map[string]string{"alpha": "a", "beta": "b"} {
		k := Token{Name: name, Sum: SumOf(name), Project: "prj-" + strings.Repeat(digit, 32)}
		if err := AddToken(t.Context(), v.tokens, k); err != nil {
			t.Fatal(err)
		}
	}
	if err := AddToken(t.Context(), v.tokens, Token{Name: "x", Sum: SumOf("x"), Project: "alpha"}); !errors.Is(err,
		varve.ErrInvalid) {
		t.Error(err)
	}
	for _, c := range []struct{ token, tool, args, says string }{
		{"alpha", "remember", `{"text":"the gate opens at nine","key":"gate"}`, "remembered"},
		{"beta", "remember", `{"text":"the gate opens at ten","key":"gate"}`, "remembered"},
		{"all", "remember", `{"text":"the gate is of oak"}`, "remembered"},
		{"alpha", "recall", `{"query":"gate opens"}`, "nine"},
		{"beta", "recall", `{"query":"gate opens"}`, "ten"},
		{"alpha", "recall", `{"query":"oak"}`, "of oak"},
		{"all", "recall", `{"query":"nine ten"}`, "nothing found"},
		{"all", "forget", `{"key":"gate"}`, "no memory has the key"},
		{"alpha", "update", `{"key":"gate","text":"the gate opens at noon"}`, "noon"},
		{"beta", "undo", `{"since":"1h"}`, "ten"},
		{"alpha", "undo", `{}`, "nine"},
		{"beta", "recall", `{"query":"gate opens nine"}`, "of oak"},
	} {
		status, answer := v.tool(c.token, c.tool, c.args)
		if status != 200 || !strings.Contains(answer, c.says) || c.token == "beta" && strings.Contains(answer, "at nine") {
			t.Errorf("%s %s %s: %d %s", c.token, c.tool, c.args, status, answer)
		}
	}
}

// withToken is an http.RoundTripper that presents a token.
type withToken struct {
	token string
	next  http.RoundTripper
}

func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+w.token)
	return w.next.RoundTrip(r)
}

// session connects the client of the SDK.
func (v *site) session(ctx context.Context, token string, o *mcp.ClientOptions) *mcp.ClientSession {
	v.t.Helper()
	transport := &http.Transport{}
	c := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "7"}, o)
	s, err := c.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: v.url + "/mcp",
		HTTPClient: &http.Client{Transport: withToken{token, transport}}}, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() {
		_ = s.Close()
		transport.CloseIdleConnections()
	})
	return s
}

// The client of the SDK, with the newest protocol that it knows.
func TestClient(t *testing.T) {
	t.Parallel()
	v := serving(t, nil)
	s := v.session(t.Context(), "all", nil)
	list, err := s.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) == 0 {
		t.Fatal(list, err)
	}
	r, err := s.CallTool(t.Context(),
		&mcp.CallToolParams{Name: "remember", Arguments: map[string]any{"text": "by the client"}})
	if err != nil || r.IsError {
		t.Fatal(r, err)
	}
	for commit, err := range v.st.Log(t.Context(), varve.LogOptions{}) {
		if w := commit.Writer; err != nil || w.Client != "tester" || w.ClientVersion != "7" || w.Token != "all" {
			t.Errorf("%+v, %v", w, err)
		}
	}
}

// A token that is removed, or whose rights change, ends what is under way with it.
func TestRevoked(t *testing.T) {
	t.Parallel()
	id := "prj-" + strings.Repeat("a", 32)
	for _, c := range []struct {
		what   string
		change func(k *Token)
		after  int // status of the next request
	}{
		{"removed", func(k *Token) { k.Sum = SumOf("other") }, 401},
		{"read-only", func(k *Token) { k.ReadOnly = true }, 200},
		{"of fewer tools", func(k *Token) { k.Tools = []string{mcpserver.Graph} }, 200},
		{"of no tool", func(k *Token) { k.Tools = []string{} }, 200},
		{"of a project", func(k *Token) { k.Project = id }, 200},
		{"of another store", func(k *Token) { k.Stores = []string{settings.StoreID + strings.Repeat("b", 32)} }, 403},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			v := serving(t, nil)
			listening, status := v.listen("all")
			if status != 200 {
				t.Fatal(status)
			}
			if err := ChangeTokens(t.Context(), v.tokens, func(list []Token) ([]Token, error) {
				for i := range list {
					if list[i].Name == "all" {
						c.change(&list[i])
					}
				}
				return list, nil
			}); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() {
				_, err := io.Copy(io.Discard, listening)
				ended <- err
			}()
			select {
			case err := <-ended:
				if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Error(err)
				}
			case <-time.After(20 * checkEvery):
				t.Error("the request goes on")
			}
			if status, answer := v.call("all", "tools/list", "{}"); status != c.after {
				t.Error(status, answer)
			}
		})
	}
}

// listenParams are the parameters of a call that listens for changes of the graph.
const listenParams = `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
	`"io.modelcontextprotocol/clientCapabilities":{},` +
	`"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}},` +
	`"notifications":{"resourceSubscriptions":["memory://knowledge-graph"]}}`

// listen begins to listen for changes; the body ends with the request.
func (v *site) listen(token string) (body io.Reader, status int) {
	v.t.Helper()
	req, err := http.NewRequestWithContext(v.t.Context(), "POST", v.url+"/mcp",
		strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":`+listenParams+`}`))
	if err != nil {
		v.t.Fatal(err)
	}
	for _, line := range append([]string{"Authorization: Bearer " + token, "MCP-Protocol-Version: 2026-07-28",
		"Mcp-Method: subscriptions/listen"}, mcpHeaders...) {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() { _ = res.Body.Close() })
	return res.Body, res.StatusCode
}

// A request is one that listens only by the protocol in which the SDK checks that it is, and only at /mcp: such a
// request has no time limit.
func TestListensOnly(t *testing.T) {
	t.Parallel()
	v := serving(t, nil)
	for _, k := range []struct {
		path, version string
		status        int
	}{
		{"/mcp", "MCP-Protocol-Version: 2026-07-28", 400}, // by the SDK: the call is another one
		{"/mcp", "MCP-Protocol-Version: 2025-06-18", 400},
		{"/mcp", "MCP-Protocol-Version: 2025-03-26", 400},
		{"/mcp", "X-None: 1", 400},
		{"/readyz", "MCP-Protocol-Version: 2026-07-28", 400},
	} {
		const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
		for _, body := range []string{ping, "[" + ping + "]"} {
			if status, _, answer := v.do("POST", k.path, body, append([]string{"Authorization: Bearer all", k.version,
				"Mcp-Method: subscriptions/listen"}, mcpHeaders...)...); status != k.status {
				t.Errorf("%s %s %s: %d %s", k.path, k.version, body, status, answer)
			}
		}
	}
}

// The end of a server lets a call finish, and ends what listens.
func TestDrains(t *testing.T) {
	t.Parallel()
	began, finish := make(chan struct{}), make(chan struct{})
	v := serving(t, func(o *Options) {
		o.Drain = time.Hour
		o.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			close(began)
			<-finish
			_, _ = io.WriteString(w, "whole")
		})
	})
	listening, _ := v.listen("all")
	answer := make(chan string, 1)
	go func() {
		_, _, text := v.do("GET", "/metrics", "", "x-api-key: all")
		answer <- text
	}()
	<-began
	v.dial() // without a request: the server does not wait for it
	v.send(v.dial(), "POST /mcp HT")
	ended, since := make(chan error, 1), time.Now()
	go func() { ended <- v.stop() }()
	_, _ = io.Copy(io.Discard, listening) // until the server ends it
	close(finish)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if took := time.Since(since); took > 4*lastRequests {
		t.Errorf("it took %v", took)
	}
	if got := <-answer; got != "whole" {
		t.Errorf("a request under way was answered with %q", got)
	}
}

// Limits: of a body, of headers, of requests at once, of wrong tokens.
func TestLimits(t *testing.T) {
	t.Parallel()
	hold, held := make(chan struct{}), make(chan struct{}, 2)
	v := serving(t, func(o *Options) {
		o.Body, o.Requests = 1000, 2
		o.Metrics = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			held <- struct{}{}
			<-hold
		})
	})
	if status, _ := v.tool("all", "remember",
		`{"text":"`+strings.Repeat("x", 2000)+`"}`); status != http.StatusRequestEntityTooLarge {
		t.Error("a body beyond the limit:", status)
	}
	if status, _, _ := v.do("GET", "/healthz", "",
		"X-Long: "+strings.Repeat("x", 10<<20)); status != http.StatusRequestHeaderFieldsTooLarge {
		t.Error("10 MiB of headers:", status)
	}
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() { v.do("GET", "/metrics", "", "x-api-key: all") })
		<-held
	}
	if status, h, _ := v.do("GET", "/healthz", ""); status != http.StatusServiceUnavailable || h.Get("Retry-After") == "" {
		t.Error("beyond the number of requests:", status)
	}
	close(hold)
	all.Wait()
	if status, _, _ := v.do("GET", "/healthz", ""); status != http.StatusOK {
		t.Error("after them:", status)
	}
}

// Wrong tokens are answered at a bounded rate, and do not keep out one that is valid.
func TestGuessed(t *testing.T) {
	t.Parallel()
	v := serving(t, func(o *Options) { o.Requests = 4 * MostFailures })
	var all sync.WaitGroup
	var mu sync.Mutex
	got := map[int]int{}
	began := time.Now()
	for i := range 3 * MostFailures {
		all.Go(func() {
			status, _ := v.tool(fmt.Sprint("guess", i), "recall", `{"query":"x"}`)
			mu.Lock()
			defer mu.Unlock()
			got[status]++
		})
	}
	if status, answer := v.tool("all", "recall", `{"query":"x"}`); status != 200 {
		t.Error("a valid token:", status, answer)
	}
	all.Wait()
	if got[401]+got[429] != 3*MostFailures || got[401] > MostFailures*(1+int(time.Since(began)/FailureDelay)) {
		t.Errorf("%v in %v", got, time.Since(began))
	}
}

// A store that was removed is not ready. The one that is put in its place is served from the next request on, whatever
// that asks for; only the agent is told.
func TestReplacedStore(t *testing.T) {
	t.Parallel()
	single := func(o *Options, held *served.Store) {
		var err error
		if o.MemoryStores, err = memorystores.Single(held, memorystores.Options{Caller: CallerOf, Name: "s"}); err != nil {
			t.Fatal(err)
		}
	}
	for _, first := range []string{"API", "ready", "MCP", "all at once"} {
		t.Run(first, func(t *testing.T) {
			t.Parallel()
			v := servingHeld(t, single)
			beta := []string{"x-api-key: all", "anthropic-beta: " + memorystores.Betas()[0]}
			dir := v.st.Admin().Stats().Dir
			if status, _, answer := v.do("GET", memorystores.Base, "", beta...); status != http.StatusOK {
				t.Error("at first:", status, answer)
			}
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			if status, _, answer := v.do("GET", "/readyz", ""); status != http.StatusServiceUnavailable ||
				strings.Contains(answer, dir) {
				t.Error("removed, ready:", status, answer)
			}
			if status, _, answer := v.do("GET", memorystores.Base, "", beta...); status != 529 || strings.Contains(answer, dir) {
				t.Error("removed, API:", status, answer)
			}
			if status, answer := v.tool("all", "remember", `{"text":"lost"}`); !strings.Contains(answer, "replaced") {
				t.Error("removed, MCP:", status, answer)
			}
			other, err := varve.Open(t.Context(), dir, nil)
			if err == nil {
				err = other.Close()
			}
			if err != nil {
				t.Fatal(err)
			}
			api := func() {
				if status, _, answer := v.do("GET", memorystores.Base, "", beta...); status != http.StatusOK {
					t.Error("put back, API:", status, answer)
				}
			}
			ready := func() {
				if status, _, answer := v.do("GET", "/readyz", ""); status != http.StatusOK {
					t.Error("put back, ready:", status, answer)
				}
			}
			remember := func(told bool) {
				status, answer := v.tool("all", "remember", `{"text":"kept"}`)
				if bad := strings.Contains(answer, `"isError":true`); status != 200 || bad && !strings.Contains(answer,
					"is served instead → repeat the call") || bad != told {
					t.Error("put back, MCP:", status, answer)
				}
			}
			switch first {
			case "API":
				api()
			case "ready":
				ready()
			case "MCP":
				remember(true)
			default:
				var all sync.WaitGroup
				for range 8 {
					all.Go(api)
					all.Go(ready)
				}
				all.Wait()
			}
			remember(false)
			api()
			ready()
		})
	}
}

// The metadata is JSON that names the resource.
func TestMetadata(t *testing.T) {
	t.Parallel()
	v := serving(t, nil)
	_, _, text := v.do("GET", metadataPath, "")
	var m struct {
		Resource string `json:"resource"`
	}
	if err := json.Unmarshal([]byte(text), &m); err != nil || m.Resource != v.url+"/mcp" {
		t.Error(text, err)
	}
	if _, err := New(v.held, Options{}); !errors.Is(err, varve.ErrInvalid) {
		t.Error("without tokens:", err)
	}
}
