package mcpserver

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/varve-db/varve/served"
)

// meta is the member of the parameters of each call in newProtocol.
const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + newProtocol +
	`","io.modelcontextprotocol/clientCapabilities":{}}`

// An unknown tool is an error of the protocol in newProtocol, and a result for older clients, as with the reference
// server.
func TestUnknownTool(t *testing.T) {
	t.Parallel()
	const text = "MCP error -32602: Tool nope not found"
	now := speak(t, openStore(t, t.TempDir(), nil))
	m, line := now.ask("tools/call", `{`+meta+`,"name":"nope","arguments":{}}`)
	var fault struct {
		Code    int
		Message string
	}
	if err := json.Unmarshal(m["error"], &fault); err != nil || fault.Code != -32602 || fault.Message != text {
		t.Errorf("%v: %s", err, line)
	}
	old := speak(t, openStore(t, t.TempDir(), nil))
	old.ask("initialize",
		`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`)
	m, line = old.ask("tools/call", `{"name":"nope","arguments":{}}`)
	var r struct {
		Content []struct{ Text string }
		IsError bool
	}
	if err := json.Unmarshal(m["result"], &r); err != nil || !r.IsError || len(r.Content) != 1 ||
		r.Content[0].Text != text {
		t.Errorf("%v: %s", err, line)
	}
}

// A tool that the client may not use is answered as one that does not exist.
func TestToolThatMayNotBeUsed(t *testing.T) {
	t.Parallel()
	o := Options{Permits: func(_ *auth.TokenInfo, tool Tool) bool { return tool.ReadOnly }}
	server, client := mcp.NewInMemoryTransports()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _ = New(served.Only(openStore(t, t.TempDir(), nil)), o).Run(ctx, server) }()
	s, err := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, nil).Connect(ctx, client, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"remember", "nope"} {
		_, err := s.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: map[string]any{"text": "x"}})
		if err == nil || !strings.Contains(err.Error(), "MCP error -32602: Tool "+name+" not found") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An answer depends on the client, so no proxy may give it to another one.
func TestAnswersAreNotShared(t *testing.T) {
	t.Parallel()
	c := speak(t, openStore(t, t.TempDir(), nil))
	for method, params := range map[string]string{
		"tools/list": "", "server/discover": "", "resources/list": "", "resources/read": `,"uri":"` + resourceURI + `"`,
	} {
		m, line := c.ask(method, `{`+meta+params+`}`)
		var r struct{ CacheScope string }
		if err := json.Unmarshal(m["result"], &r); err != nil || r.CacheScope != "private" {
			t.Errorf("%s: %v: %.200s", method, err, line)
		}
	}
}

// The error for an unknown resource names the resource in its data.
func TestUnknownResource(t *testing.T) {
	t.Parallel()
	c := speak(t, openStore(t, t.TempDir(), nil))
	m, line := c.ask("resources/read", `{`+meta+`,"uri":"memory://a\"b"}`)
	var fault struct {
		Code int
		Data struct{ URI string }
	}
	if err := json.Unmarshal(m["error"], &fault); err != nil || fault.Code != -32602 || fault.Data.URI != `memory://a"b` {
		t.Errorf("%v: %s", err, line)
	}
}
