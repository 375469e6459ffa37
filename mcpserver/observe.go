package mcpserver

import (
	"context"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Operation describes a request that was answered; see Options.Observe. Method and Tool have values from a
// fixed list, whatever a client sends; any other value is replaced by "other".
type Operation struct {
	Method string // method of the protocol, such as "tools/call"
	Tool   string // name of the tool, if Method is "tools/call"
	Error  string // "": none; "tool_error": the tool failed; "error": the request was refused
	Took   time.Duration
}

// methods are the values of Operation.Method, except "other".
var methods = []string{"initialize", "server/discover", "ping", "tools/list", "tools/call", "resources/list",
	"resources/read", "resources/templates/list", "resources/subscribe", "resources/unsubscribe", "prompts/list",
	"subscriptions/listen", "notifications/initialized", "notifications/cancelled"}

// observe is middleware that reports each request and its duration to Options.Observe.
func (s *host) observe(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		begun := time.Now()
		r, err := next(ctx, method, req)
		o := Operation{Method: method, Took: time.Since(begun)}
		if !slices.Contains(methods, method) {
			o.Method = "other"
		}
		if p, ok := req.GetParams().(*mcp.CallToolParamsRaw); ok {
			if o.Tool = p.Name; s.tool(p.Name) == nil {
				o.Tool = "other"
			}
		}
		switch v := r.(type) {
		case *mcp.CallToolResult:
			if v != nil && v.IsError {
				o.Error = "tool_error"
			}
		case *plainResult:
			if v.IsError {
				o.Error = "tool_error"
			}
		}
		if err != nil {
			o.Error = "error"
		}
		s.o.Observe(o)
		return r, err
	}
}
