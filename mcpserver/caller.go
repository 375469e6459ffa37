package mcpserver

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
	"weak"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/varve-db/varve"
)

// caller is the state of one connected client. The client's changes have a writer of their own: a client that
// connects again, or another one with the same name, is a different writer.
type caller struct {
	id      string // id that the server issued to the client
	session *mcp.ServerSession
	token   string // name of the client's access token

	mu      sync.Mutex
	project Project
	known   bool   // project is the project of the client's current roots
	asked   bool   // the project was determined at least once
	told    string // line that the next answer must contain

	// the store that the last call used; nil: no call yet, or the client was told that the store is gone
	store weak.Pointer[varve.Store]
}

type callerKey struct{}

// callers has the state of each connected client. If the transport has tokens, each request may have its own session,
// so a client is identified by its token.
type callers struct {
	mu     sync.Mutex
	list   map[*mcp.ServerSession]*caller
	tokens map[string]*caller
}

func (cs *callers) of(req *mcp.CallToolRequest) *caller {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	fresh := func() *caller {
		return &caller{id: "mcp-" + strings.ToLower(rand.Text()[:12]), session: req.Session}
	}
	if t := tokenOf(req.Extra); t != nil && t.UserID != "" {
		c := cs.tokens[t.UserID]
		if c == nil {
			if c = fresh(); cs.tokens == nil {
				cs.tokens = map[string]*caller{}
			}
			c.session, c.token = nil, t.UserID
			cs.tokens[t.UserID] = c
		}
		return c
	}
	session := req.Session
	if c := cs.list[session]; c != nil {
		return c
	}
	c := fresh()
	if session == nil {
		return c
	}
	if cs.list == nil {
		cs.list = map[*mcp.ServerSession]*caller{}
	}
	cs.list[session] = c
	go func() {
		_ = session.Wait()
		cs.mu.Lock()
		defer cs.mu.Unlock()
		delete(cs.list, session)
	}()
	return c
}

// writer returns a context for changes by the client. The writer of these changes is described by the name that the
// client gave, the name of the client's token, and the id that the server issued.
func (c *caller) writer(ctx context.Context, req *mcp.CallToolRequest, host string) context.Context {
	w := varve.Writer{Token: c.token}
	if i := req.ClientInfo(); i != nil {
		w.Client, w.ClientVersion = i.Name, i.Version
	}
	switch {
	case host == "":
		w.Session = c.id
	case c.token == "":
		w.Token = c.id
	}
	return varve.WithWriter(ctx, w)
}

// isNew reports whether a call of the client uses another store than the client's previous call. The client must be
// told of a new store once. For requests without a session isNew returns false: such requests have a token that several
// clients may share, so it is unknown which client to tell.
func (c *caller) isNew(st *varve.Store) bool {
	if c == nil || c.session == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	none, was := weak.Pointer[varve.Store]{}, c.store
	c.store = weak.Make(st)
	return was != none && was != c.store
}

// forgetStore forgets the store that the client's last call used, so that isNew returns false for the next call. It is
// called when the client has been told that this store is no longer served.
func (c *caller) forgetStore() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.store = weak.Pointer[varve.Store]{}
}

// own returns the name of the client's writer. undo uses this name to find the changes that the client made.
func (c *caller) own(host string) string {
	if host != "" && c.token != "" {
		return c.token
	}
	return c.id
}

// rootsWait is how long a client may take to list its roots.
const rootsWait = 10 * time.Second

// learn determines the project of the client, before a call that needs the project. A client of the protocol version
// newProtocol or a later one cannot be asked for its roots during a call: if its roots are needed, learn returns a
// result that asks for them, and the client repeats the call.
func (c *caller) learn(ctx context.Context, o *Options, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if o.Project == nil {
		return nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known {
		return nil, nil
	}
	roots, ask, err := c.roots(ctx, req)
	if ask != nil || err != nil {
		return ask, err
	}
	p, err := o.Project(ctx, Origin{Roots: roots, Token: tokenOf(req.Extra)})
	if err != nil {
		return nil, err
	}
	if c.asked && p.ID != c.project.ID {
		c.told = fmt.Sprintf("the roots have changed: the project is %s now, and was %s", p.called(), c.project.called())
	}
	// A client of newProtocol does not report changes of its roots, so it is asked for them at each call.
	c.project, c.known, c.asked = p, !(req.ProtocolVersion() >= newProtocol && offersRoots(req)), true
	return nil, nil
}

// of returns the current project of the client.
func (c *caller) of() Project {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.project
}

// news returns the line about the client's project that the next answer must contain, and clears it.
func (c *caller) news() (told string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	told, c.told = c.told, ""
	return told
}

func (p Project) called() string {
	if p.ID == "" {
		return "none"
	}
	return p.Name
}

func offersRoots(req *mcp.CallToolRequest) bool {
	p := req.ClientCapabilities()
	//lint:ignore SA1019 clients have roots for a year yet
	return p != nil && p.RootsV2 != nil
}

// rootsRequest is the name that a result uses for the request for the client's roots.
const rootsRequest = "roots"

// roots returns the folders that the client offers as roots, or nil if the client offers none. If a client declares
// that it has roots but does not list them, roots returns an error and the call is refused, because the call might
// otherwise store memories in the wrong project. From newProtocol on, roots may return a result that asks the client
// for its roots.
func (c *caller) roots(ctx context.Context, req *mcp.CallToolRequest) ([]string, *mcp.CallToolResult, error) {
	if c.session == nil || !offersRoots(req) {
		return nil, nil, nil
	}
	//lint:ignore SA1019 clients have roots for a year yet
	var list *mcp.ListRootsResult
	if req.ProtocolVersion() >= newProtocol {
		answer, there := req.Params.InputResponses[rootsRequest]
		if !there {
			//lint:ignore SA1019 clients have roots for a year yet
			ask := mcp.InputRequestMap{rootsRequest: &mcp.ListRootsParams{}}
			return nil, &mcp.CallToolResult{InputRequests: ask}, nil
		}
		var ok bool
		//lint:ignore SA1019 clients have roots for a year yet
		if list, ok = answer.(*mcp.ListRootsResult); !ok {
			return nil, nil, errors.New("the client has not listed its roots, so the project is unknown")
		}
	} else {
		ctx, cancel := context.WithTimeout(ctx, rootsWait)
		defer cancel()
		var err error
		//lint:ignore SA1019 clients have roots for a year yet
		list, err = c.session.ListRoots(ctx, nil)
		if of := (*jsonrpc.Error)(nil); errors.As(err, &of) && of.Code == jsonrpc.CodeMethodNotFound {
			return nil, nil, nil
		}
		if err != nil {
			return nil, nil, fmt.Errorf("the client has not listed its roots, so the project is unknown: %w → try again, or "+
				"start the server with --project NAME", err)
		}
	}
	var all []string
	for _, root := range list.Roots {
		if path, ok := folderOf(root.URI); ok {
			all = append(all, path)
		}
	}
	return all, nil, nil
}

// folderOf returns the path of the folder that a file URI names; false if the URI names no local folder.
func folderOf(uri string) (string, bool) {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" || u.Host != "" && u.Host != "localhost" {
		return "", false
	}
	path := u.Path
	if runtime.GOOS == "windows" {
		path = filepath.FromSlash(strings.TrimPrefix(path, "/"))
	}
	return path, filepath.IsAbs(path)
}

func (s *host) rootsChanged(_ context.Context, r *mcp.RootsListChangedRequest) {
	s.callers.mu.Lock()
	c := s.callers.list[r.Session]
	s.callers.mu.Unlock()
	if c == nil {
		return // it is asked at its first call
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = false
}
