package mcpserver

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/served"
)

// talk is a session by lines with any server. said gives the next line; a session that says
// nothing for a minute fails the test.
func talk(t *testing.T, server *mcp.Server) (say func(lines ...string), said func() string) {
	t.Helper()
	in, send := io.Pipe()
	receive, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- server.Run(t.Context(), Stdio(in, out, nil)) }()
	toSay := make(chan string, 1000)
	go func() {
		for line := range toSay {
			_, _ = io.WriteString(send, line+"\n")
		}
		_ = send.Close()
	}()
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		for s := bufio.NewReader(receive); ; {
			line, err := s.ReadString('\n')
			if err != nil {
				return
			}
			lines <- line
		}
	}()
	t.Cleanup(func() {
		close(toSay)
		_ = receive.Close()
		<-ended
	})
	say = func(lines ...string) {
		for _, l := range lines {
			toSay <- l
		}
	}
	said = func() string {
		t.Helper()
		select {
		case line := <-lines:
			return line
		case <-time.After(time.Minute):
			t.Fatal("nothing is said")
		}
		return ""
	}
	return say, said
}

// A server may ask its client while it handles a notification, whatever the client sends before
// it answers; and an answer that cannot be taken ends the wait for it. A server of others sees
// nothing of what this package gives the SDK.
func TestServerAsks(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		`"result":{"roots":[{"uri":"file:///a"}]}`:                                              "1 roots, <nil>",
		`"result":{"roots":[` + strings.Repeat(`{"uri":"file:///a"},`, 9_999) + `{"uri":"b"}]}`: "10000 roots, <nil>",
		`"result":{"x":` + strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth) + `}`:  "nested deeper",
		`"result":{"x":"` + strings.Repeat("x", maxLarge) + `"}`:                                "exceeds the limit",
		`"result":{"x":"` + strings.Repeat("x", MaxLine) + `"}`:                                 "more than 67108864 bytes",
		`"error":{"code":-32601,"message":"no roots"}`:                                          "no roots",
	} {
		t.Run(want, func(t *testing.T) {
			if len(answer) > MaxLine && !proofs.Long() {
				t.Skip("VARVE_LONG=1 runs it: 64 MiB")
			}
			heard := make(chan string, 1)
			server := mcp.NewServer(&mcp.Implementation{Name: "another"}, &mcp.ServerOptions{InitializedHandler: func(ctx context.Context, r *mcp.InitializedRequest) {
				//lint:ignore SA1019 a request of the server with an answer: clients have it for a year yet
				roots, err := r.Session.ListRoots(ctx, nil)
				n := 0
				if err == nil {
					n = len(roots.Roots)
				}
				heard <- fmt.Sprintf("%d roots, %v", n, err)
			}})
			server.AddTool(&mcp.Tool{Name: "size", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return failed(fmt.Sprint(len(r.Params.Arguments), r.Extra != nil && r.Extra.TokenInfo != nil)), nil
			})
			say, said := talk(t, server)
			say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"roots":{}},"clientInfo":{"name":"t","version":"1"}}}`)
			said()
			say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			if got := said(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":1,"method":"roots/list"`) {
				t.Fatal(got)
			}
			say(slices.Repeat([]string{`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`}, 3*manyNotices)...)
			say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"size","arguments":{"x":"` + strings.Repeat("x", 100_000) + `"}}}`)
			say(`{"jsonrpc":"2.0","id":1,` + answer + `}`)
			if got := <-heard; !strings.Contains(got, want) {
				t.Errorf("%.300s, and not %s", got, want)
			}
			if got := said(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"100008 false"`) {
				t.Errorf("%.300s", got)
			}
		})
	}
}

// A session whose store was exchanged by others is told once, before anything is done in the other store.
func TestToldOfOtherStore(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the folder of an open store cannot be removed")
	}
	dir := filepath.Join(t.TempDir(), "s")
	open := func(ctx context.Context) (*varve.Store, error) {
		return varve.Open(ctx, dir, &varve.Options{NoBackground: true})
	}
	st, err := open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	held := served.New(st, served.Options{Open: open})
	t.Cleanup(func() {
		held.End()
		_ = st.Close() // its folder was replaced
	})
	server := New(held, Options{})
	var calls []func(text string) string
	for range 2 {
		say, said := talk(t, server)
		say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},` +
			`"clientInfo":{"name":"t","version":"1"}}}`)
		said()
		say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		calls = append(calls, func(text string) string {
			t.Helper()
			say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"remember","arguments":{"text":"` + text +
				`"}}}`)
			return said()
		})
	}
	has(t, calls[0]("the first store"), "remembered")
	has(t, calls[1]("the first store"), "known already")
	for range 2 {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		has(t, calls[0]("of no store"), "is served instead → repeat the call")
		has(t, calls[0]("the second store"), "remembered")
		has(t, calls[1]("of no store"), "a different store is now served, and nothing was done → repeat the call")
		has(t, calls[1]("the second store"), "known already")
	}
	for m, err := range held.Current().Memories(t.Context()) {
		if err != nil || m.Content != "the second store" {
			t.Errorf("%q, %v", m.Content, err)
		}
	}
}

// What a call that listens is told carries the client's id of that call.
func TestListenHasItsID(t *testing.T) {
	t.Parallel()
	st := openStore(t, t.TempDir(), nil)
	say, said := talk(t, New(served.Only(st), both))
	const (
		meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
		id   = `"io.modelcontextprotocol/subscriptionId":90071992547409931`
	)
	say(`{"jsonrpc":"2.0","id":90071992547409931,"method":"subscriptions/listen","params":{` + meta + `,"notifications":{"resourceSubscriptions":["` + resourceURI + `"]}}}`)
	if got := said(); !strings.Contains(got, `"notifications/subscriptions/acknowledged"`) || !strings.Contains(got, id) {
		t.Error(got)
	}
	c := connect(t, st, Options{}, nil)
	c.call("create_entities", `{"entities":[{"name":"a","entityType":"t","observations":[]}]}`)
	if got := said(); !strings.Contains(got, `"notifications/resources/updated"`) || !strings.Contains(got, id) {
		t.Error(got)
	}
	say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":90071992547409931}}`)
	if got := said(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":90071992547409931,"result":`) || !strings.Contains(got, id) {
		t.Error(got)
	}
}
