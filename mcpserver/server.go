package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/semaphore"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/project"
	"github.com/varve-db/varve/served"
)

// The groups of tools.
const (
	Graph  = "graph"  // the nine tools of the reference server, and its resource
	Memory = "memory" // context, remember, recall, update, recent, forget, undo, history

	// Working has the tools of working memory, such as working_set. It is offered only if a host names it.
	Working = "working"

	// Notes has the tool memory: the six commands of package memorytool, over the notes of the project.
	Notes = "notes"
)

// AllGroups stands for all groups in ChooseGroups.
const AllGroups = "all"

// ChooseGroups returns the groups of tools that have the given names; the name AllGroups stands for all groups. If
// names is empty or has an unknown name, the error lists the valid names.
func ChooseGroups(names []string) ([]string, error) {
	chosen := []string{}
	for _, name := range names {
		switch name = strings.TrimSpace(name); {
		case name == AllGroups:
			return Groups(), nil
		case name != "":
			chosen = append(chosen, name)
		}
	}
	if len(chosen) == 0 {
		err := fmt.Errorf("%w: no group of tools is named: choose from %s", varve.ErrInvalid, GroupNames())
		return nil, &varve.FieldError{Field: "groups", Err: err}
	}
	return chosen, (&Options{Groups: chosen}).Validate()
}

// GroupNames returns the names that ChooseGroups accepts, as text for a message.
func GroupNames() string { return strings.Join(append(Groups(), AllGroups), ", ") }

// Groups returns the names of all groups of tools, in the order in which they are listed.
func Groups() []string {
	var names []string
	for _, g := range groups() {
		names = append(names, g.name)
	}
	return names
}

// DefaultGroups returns the groups of tools that are offered if none are named.
func DefaultGroups() []string {
	var names []string
	for _, g := range groups() {
		if g.unasked {
			names = append(names, g.name)
		}
	}
	return names
}

// group is a set of tools that a user selects by its name.
type group struct {
	name         string
	tools        []tool
	instructions string
	unasked      bool // offered if no groups are named
}

// groups returns all groups of tools. To add a group, add a line here.
func groups() []group {
	return []group{
		{Graph, lenient(graphTools()), graphInstructions, false},
		{Memory, memoryTools(), memoryInstructions, true},
		{Working, workingTools(), workingInstructions, false},
		{Notes, noteTools(), noteInstructions, false},
	}
}

func lenient(tools []tool) []tool {
	for i := range tools {
		tools[i].hints.lenient = true
	}
	return tools
}

// Project is the project to which a client's memories belong; see Options.Project.
type Project struct {
	ID   string // id from package internal/project; "": no project
	Name string // name to show in answers
}

// Origin describes where the requests of a client come from.
type Origin struct {
	Roots []string        // the folders that the client offers as its roots; nil if it offers none, or has a token
	Token *auth.TokenInfo // set on a transport with tokens; otherwise nil
}

// Options are the settings of a server. The zero value has the defaults.
type Options struct {
	// Groups of tools that are offered; nil is DefaultGroups.
	Groups []string
	// Embed returns the vectors by which recall searches by meaning: Vectors().Embed of the store,
	// which does not wait for an embedder that is down, or the store's own Options.Embed. nil:
	// recall searches by words.
	Embed func(ctx context.Context, texts []string) ([][]float32, error)
	// EmbedModel is the name of the model, "" when unknown: recall does not search by meaning in a
	// store whose vectors are by another model.
	EmbedModel string
	// GraphBytes is the maximum size in bytes of the part of the graph kept in memory; 0 means 64
	// MiB, a negative number none. A larger graph is read from the store for each request.
	GraphBytes int64
	// Evicted returns how many memories the store has deleted to make room since the previous call
	// of Evicted, and the id of the first: see varve.EventEvicted. The result of a call that writes
	// reports them; of concurrent calls, only one does. nil: no result does.
	Evicted func() (count int, first string)
	// Project returns the project of a client. It is called before the first call that needs it, and again when the
	// roots have changed. Tools of the group memory, and of working memory, reach the project and the shared part of
	// the store, and nothing else. If Project returns an error, their calls fail with that error. nil: there are no
	// projects, and the tools reach the shared part.
	Project func(ctx context.Context, of Origin) (Project, error)
	// Session is the Session of the Options.Writer of the store. The id that the server issues to a client becomes the
	// Session of the client's writer if Session is "", otherwise its Token, unless the client has a token of its own.
	Session string
	// Structured makes the tools of the group memory declare an output schema, and add structured content to
	// their answers, for programs. This doubles the tokens that an answer costs a model.
	Structured bool
	// Permits reports whether the client of a request may use a tool. The argument client is what the transport
	// knows about the client, nil on a transport without tokens. Tools that are not permitted are not listed,
	// and calls of them are refused as calls of an unknown tool. nil permits all.
	Permits func(client *auth.TokenInfo, t Tool) bool
	// Writing, if not nil, is called before a tool that may change something is run, after the arguments were checked.
	// If Writing returns an error, the tool is not run, and the call fails with that error. Otherwise end is called
	// after the tool has run.
	Writing func(ctx context.Context) (end func(), err error)
	// Observe, if not nil, is called for each request that was answered, by the goroutine that answers it.
	Observe func(o Operation)
	// Version is the version of the host that clients get; "": the version of the library.
	Version string
	// Logger receives messages that cannot be sent to a client; nil discards them.
	Logger *slog.Logger
	// Clock returns the current time; nil means time.Now.
	Clock func() time.Time
}

// Tool describes a tool that is offered to clients.
type Tool struct {
	Name     string
	Group    string
	ReadOnly bool // the tool changes nothing
}

// Validate returns the first invalid option as a *varve.FieldError, or nil.
func (o *Options) Validate() error {
	for _, g := range o.Groups {
		if !slices.Contains(Groups(), g) {
			return &varve.FieldError{Field: "groups", Value: g,
				Err: fmt.Errorf("%w: there is no such group of tools; the groups are %s", varve.ErrInvalid,
					GroupNames())}
		}
	}
	return nil
}

const defaultGraphBytes = 64 << 20

// host has the data that all calls share, whichever store they use.
type host struct {
	o      Options
	tools  []tool
	groups map[string]string // the group of each tool, by the tool's name
	served *served.Store

	latest struct {
		sync.Mutex
		of *server // server of the store that is served now
	}
	stamps struct {
		sync.Mutex
		last time.Time
	}
	loads   *semaphore.Weighted
	updates updates
	warmed  atomic.Bool
	callers callers
	pages   pages
}

// server has the data that the calls of one store share. It does not change.
type server struct {
	*host
	st      *varve.Store
	view    *view
	deleted *project.Deleted
}

// New returns a server for any number of sessions. The caller owns the store: it must stay open as
// long as a session does. Unknown groups are ignored; see Options.Validate.
//
// The SDK runs the calls of a session concurrently, in no certain order. Stdio delivers calls one
// by one, so that a client that sends without waiting gets the same results as one that waits. On
// another transport a client has to wait for the answer to one call before it sends another that
// depends on it.
func New(st *served.Store, o Options) *mcp.Server {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.GraphBytes == 0 {
		o.GraphBytes = defaultGraphBytes
	}
	if o.Version == "" {
		o.Version = "0.1"
	}
	if o.Groups == nil {
		o.Groups = DefaultGroups()
	}
	s := &host{served: st, o: o, loads: semaphore.NewWeighted(maxLoads), groups: map[string]string{}}
	var about []string
	for _, g := range groups() {
		if slices.Contains(o.Groups, g.name) {
			s.tools = append(s.tools, g.tools...)
			for i := range g.tools {
				s.groups[g.tools[i].name] = g.name
			}
			about = append(about, g.instructions)
		}
	}
	options := &mcp.ServerOptions{Instructions: strings.Join(about, "\n\n"), Logger: quieter(o.Logger),
		Capabilities: &mcp.ServerCapabilities{}, SetCacheable: neverShared}
	if !o.Structured {
		for i := range s.tools {
			if s.tools[i].title == "" {
				s.tools[i].out = nil
			}
		}
	}
	if o.Project != nil {
		//lint:ignore SA1019 clients have roots for a year yet
		options.RootsListChangedHandler = s.rootsChanged
	}
	offersGraph := slices.Contains(o.Groups, Graph)
	if offersGraph {
		s.subscriptions(options)
	}
	m := mcp.NewServer(&mcp.Implementation{Name: "varve", Title: "Varve", Version: o.Version}, options)
	s.updates.server = m
	for i := range s.tools {
		m.AddTool(s.tools[i].declaration(), s.handler(&s.tools[i]))
	}
	if offersGraph {
		s.addResource(m)
	}
	m.AddReceivingMiddleware(s.asReference)
	if o.Observe != nil {
		m.AddReceivingMiddleware(s.observe)
	}
	return m
}

// unreadable logs that a memory cannot be read. Answers omit this memory, and contain the others.
func (s *host) unreadable(err error) {
	s.o.Logger.Warn("a memory that cannot be read is omitted from the graph", "err", err)
}

// stamp returns the first of n consecutive nanoseconds, which are the creation times of n new objects. All these times
// are later than those that earlier calls have reserved. Answers are sorted by these times.
func (s *host) stamp(n int) time.Time {
	s.stamps.Lock()
	defer s.stamps.Unlock()
	at := s.o.Clock().Round(0)
	if at.Before(s.stamps.last) {
		at = s.stamps.last
	}
	s.stamps.last = at.Add(time.Duration(n))
	return at
}

// handler returns the handler of a tool for the SDK. It checks the arguments, and returns an error of the tool
// as a result, which the model sees.
func (s *host) handler(t *tool) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		c := s.callers.of(req)
		if !t.hints.lenient {
			if ask, err := c.learn(ctx, &s.o, req); err != nil {
				return failed(err.Error()), nil
			} else if ask != nil {
				return ask, nil
			}
		}
		args, err := t.arguments(req.Params.Arguments)
		if err != nil {
			return failed(err.Error()), nil
		}
		if c := callOf(req.Extra); c != nil && c.arguments != nil {
			c.arguments, req.Params.Arguments = nil, nil // so that the line can be freed
		}
		ctx = c.writer(context.WithValue(ctx, callerKey{}, c), req, s.o.Session)
		if s.o.Writing != nil && !t.hints.readOnly {
			end, err := s.o.Writing(ctx)
			if err != nil {
				return failed(err.Error()), nil
			}
			defer end()
		}
		var r *mcp.CallToolResult
		err = s.during(ctx, func(s *server) error {
			a, err := t.run(ctx, s, args)
			if err != nil {
				return err
			}
			r = a.result(t, req.Extra)
			if s.o.Evicted != nil && !t.hints.readOnly {
				s.tellEvicted(r, func(id string) bool {
					_, err := project.New(s.st, c.of().ID, nil).History(ctx, id)
					return err == nil
				})
			}
			return nil
		})
		if err != nil {
			return failed(err.Error() + advice(err)), nil
		}
		return r, nil
	}
}

// tokenOf returns the information about the access token of a request, as the transport has verified it; nil if the
// request has no token.
func tokenOf(extra *mcp.RequestExtra) *auth.TokenInfo {
	if extra == nil {
		return nil
	}
	return extra.TokenInfo
}

// permitted reports whether the client of a request may use a tool.
func (s *host) permitted(extra *mcp.RequestExtra, t *tool) bool {
	return s.o.Permits == nil || s.o.Permits(tokenOf(extra), Tool{t.name, s.groups[t.name], t.hints.readOnly})
}

// tool returns the tool with the given name, nil if it is not offered.
func (s *host) tool(name string) *tool {
	if i := slices.IndexFunc(s.tools, func(t tool) bool { return t.name == name }); i >= 0 {
		return &s.tools[i]
	}
	return nil
}

// unknown returns the answer to a call of a tool that is not offered, or that the client may not use. From the protocol
// version newProtocol on, the answer is an error of the protocol. Older clients get the same result as from the
// reference server.
func unknown(req mcp.Request, tool string) (mcp.Result, error) {
	text := fmt.Sprintf("MCP error -32602: Tool %s not found", tool)
	if call, ok := req.(*mcp.CallToolRequest); ok && call.ProtocolVersion() >= newProtocol {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: text}
	}
	return failed(text), nil
}

// tellEvicted adds to a result that memories were evicted: a text for people and models, and a member of _meta
// for programs, because the structured content must match the tool's declaration. A memory that the client
// cannot see is not named.
func (s *host) tellEvicted(r *mcp.CallToolResult, sees func(id string) bool) {
	n, first := s.o.Evicted()
	if n == 0 {
		return
	}
	was, others := "1 memory was", ""
	if n > 1 {
		was, others = fmt.Sprintf("%d memories were", n), " and others"
	}
	named := sees(first)
	id := first
	if !named {
		first, others = "memctl log lists them", ""
	}
	r.Content = append(r.Content,
		&mcp.TextContent{Text: fmt.Sprintf("The store is at its limit: %s deleted to make room: %s%s", was, first, others)})
	if r.Meta == nil {
		r.Meta = mcp.Meta{}
	}
	r.Meta["varve/evicted"] = map[string]any{"count": n}
	if named {
		r.Meta["varve/evicted"] = map[string]any{"count": n, "first": id}
	}
}

// advice returns a remedy for an error whose text does not contain a remedy.
func advice(err error) string {
	switch {
	case errors.Is(err, varve.ErrBatchTooLarge):
		return "; nothing was changed: divide the change into several calls"
	case errors.Is(err, varve.ErrTooLarge):
		return "; nothing was changed: write less text into one memory or entity, or divide the text among several"
	}
	return ""
}

// asReference changes the SDK's answers where they differ from those of the reference server. It lists the tools in the
// order of the reference server, and with the member "execution" of each tool. It returns the errors of the reference
// server for calls of unknown tools, for calls whose arguments are not an object, for reads of unknown resources, and
// for methods of capabilities that are not offered.
func (s *host) asReference(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		takes(req.GetExtra())
		s.warm(req)
		switch method {
		case "tools/list":
			r, err := next(ctx, method, req)
			if all, ok := r.(*mcp.ListToolsResult); ok && err == nil {
				return s.listing(all, req.GetExtra()), nil
			}
			return r, err
		case "tools/call":
			if p, ok := req.GetParams().(*mcp.CallToolParamsRaw); ok {
				if c := callOf(req.GetExtra()); c != nil && c.arguments != nil {
					p.Arguments = c.arguments
				}
				at := slices.IndexFunc(s.tools, func(t tool) bool { return t.name == p.Name })
				kind := rawKind(p.Arguments)
				if kind != "object" && kind != "undefined" && (kind != "null" || at < 0 || s.tools[at].hints.lenient) {
					return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: noRecord(kind)}
				}
				if at < 0 || !s.permitted(req.GetExtra(), &s.tools[at]) {
					return unknown(req, p.Name)
				}
			}
			r, err := next(ctx, method, req)
			if err == nil {
				r = plain(req, r)
			}
			return r, err
		case "prompts/list", "prompts/get", "completion/complete", "logging/setLevel":
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "Method not found"}
		case "resources/read":
			if p, ok := req.GetParams().(*mcp.ReadResourceParams); ok && p.URI != resourceURI {
				fault := &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams,
					Message: fmt.Sprintf("MCP error -32602: Resource %s not found", p.URI)}
				if r, ok := req.(*mcp.ReadResourceRequest); !ok || r.ProtocolVersion() < newProtocol {
					return nil, fault // as the reference server answers
				}
				data, err := json.Marshal(map[string]string{"uri": p.URI})
				if err != nil {
					return nil, err
				}
				fault.Data = data
				return nil, fault
			}
		}
		return next(ctx, method, req)
	}
}

// neverShared marks an answer as private, so that no proxy gives the answer to another client: the offered tools
// depend on the access token, and the graph belongs to the client.
func neverShared(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" }

// listed is a list of tools as the reference server encodes it. The SDK would sort the tools, and omit their
// member execution.
type listed struct {
	*mcp.ListToolsResult
	Tools []json.RawMessage `json:"tools"`
}

func (s *host) listing(result *mcp.ListToolsResult, extra *mcp.RequestExtra) *listed {
	l := &listed{ListToolsResult: result, Tools: []json.RawMessage{}}
	for i := range s.tools {
		if s.permitted(extra, &s.tools[i]) {
			l.Tools = append(l.Tools, s.tools[i].json())
		}
	}
	return l
}

// rawKind returns the JavaScript type of the arguments of a call. It looks only at the first byte.
func rawKind(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "undefined"
	}
	switch raw[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}

func noRecord(kind string) string {
	return "[\n  {\n    \"expected\": \"record\",\n    \"code\": \"invalid_type\",\n    \"path\": [\n      " +
		"\"params\",\n      \"arguments\"\n    ],\n" +
		"    \"message\": \"Invalid input: expected record, received " + kind + "\"\n  }\n]"
}

// quieter returns a logger for the SDK that drops messages below the level Warn, because the SDK logs every session at
// lower levels. It also drops the error that the SDK logs when the host ends the server.
func quieter(l *slog.Logger) *slog.Logger { return slog.New(&atLeast{l.Handler()}) }

type atLeast struct{ slog.Handler }

func (h *atLeast) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && h.Handler.Enabled(ctx, level)
}

func (h *atLeast) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "server run cancelled" {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}
