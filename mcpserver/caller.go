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

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/varve-db/varve"
)

// caller is what the server knows of one connection. What it writes is by a writer of its own: a client that connects
// again, and another one that gives the same name, are others.
type caller struct {
	id      string // issued by the server
	session *mcp.ServerSession
	token   string // the name of its token

	mu      sync.Mutex
	project Project
	known   bool   // project is as the roots are
	asked   bool   // it was known before
	told    string // for the next answer
}

type callerKey struct{}

// callers has the connections. On a transport with tokens, where each request may be a session of its own, the client
// is known by its token.
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

// writer returns a context in which the writer is the client: with the name that it gave itself, that of its token, and
// the id that was issued to it.
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

// own returns the name of the writer by which undo finds what the client wrote.
func (c *caller) own(host string) string {
	if host != "" && c.token != "" {
		return c.token
	}
	return c.id
}

// rootsWait is how long a client may take to list its roots.
const rootsWait = 10 * time.Second

// learn finds out the project of the client before a call that needs it. It returns a result if the client has to be
// asked for its roots first, as the protocol of newProtocol wants that.
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
	// Such a client does not tell when its roots change: it is asked at each call.
	c.project, c.known, c.asked = p, !(req.ProtocolVersion() >= newProtocol && offersRoots(req)), true
	return nil, nil
}

// of returns the project of the client.
func (c *caller) of() Project {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.project
}

// news returns what the next answer tells, once.
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

// rootsRequest is the name of the request for the roots in a result.
const rootsRequest = "roots"

// roots returns the folders that the client offers, nil if it offers none. A client that says that it has roots and
// does not list them is not served: its memories might go to another project.
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

// folderOf returns the path that a URI of a file names.
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
