package server

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/mcpserver"
	"github.com/varve-db/varve/memorystores"
	"github.com/varve-db/varve/served"
)

// permits reports whether the access token of a request permits the use of a tool.
func permits(info *auth.TokenInfo, tool mcpserver.Tool) bool {
	if info == nil {
		return false
	}
	t, ok := info.Extra[tokenInfoKey].(*Token)
	return ok && (!t.ReadOnly || tool.ReadOnly) && (t.Tools == nil || slices.Contains(t.Tools, tool.Group))
}

// projectOf returns the project to which the access token in origin confines its client, or the zero Project if
// the token does not confine the client to a project.
func projectOf(_ context.Context, origin mcpserver.Origin) (mcpserver.Project, error) {
	if origin.Token == nil {
		return mcpserver.Project{}, nil
	}
	t, ok := origin.Token.Extra[tokenInfoKey].(*Token)
	if !ok {
		return mcpserver.Project{}, nil
	}
	return mcpserver.Project{ID: t.Project, Name: t.Project}, nil
}

// TokenOf returns the access token that a request has presented, or nil if it presented none. ctx is the context of the
// request.
func TokenOf(ctx context.Context) *Token {
	info := auth.TokenInfoFromContext(ctx)
	if info == nil {
		return nil
	}
	t, _ := info.Extra[tokenInfoKey].(*Token)
	return t
}

// CallerOf returns the caller of a request as memorystores.Options.Caller needs it. The caller has the rights of the
// request's access token. It returns false if the token must not use the Memory Stores API: a token that is confined to
// a project or to groups of tools must not, because it must not use notes.
func CallerOf(ctx context.Context) (memorystores.Caller, bool) {
	t := TokenOf(ctx)
	if t == nil || t.Project != "" || t.Tools != nil {
		return memorystores.Caller{}, false
	}
	return memorystores.Caller{Name: t.Name, ReadOnly: t.ReadOnly, Stores: t.Stores}, true
}

// agentsOfStores returns a handler of MCP for the stores of Options.MemoryStores. The path of a request names the
// store. If the path names none, the handler serves the only store that the token permits.
func (s *Server) agentsOfStores() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t, id := TokenOf(r.Context()), r.PathValue("store")
		switch {
		case t == nil: // cannot happen: authenticated passes on only requests with a token
			refuse(w, r, http.StatusForbidden, "this token does not permit this path")
			return
		case id == "" && len(t.Stores) != 1:
			refuse(w, r, http.StatusBadRequest,
				"the token permits more than one store: connect to /mcp/ID, where ID is the id "+
					"of a store, or make a token for one store: memctl serve token add NAME --stores ID")
			return
		case id == "":
			id = t.Stores[0]
		case t.Stores != nil && !slices.Contains(t.Stores, id):
			refuse(w, r, http.StatusNotFound, "there is no such memory store") // the answer hides whether it exists
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		lease, err := s.o.MemoryStores.Lend(ctx, id, listens(r))
		if err != nil {
			status, text := memorystores.Status(ctx, err)
			if status >= http.StatusInternalServerError {
				s.o.Logger.Error("the store cannot be opened", "store", id, "err", err)
			}
			refuse(w, r, status, text)
			return
		}
		defer lease.Release()
		if listens(r) {
			go func() {
				select {
				case <-lease.Ended():
					cancel()
				case <-ctx.Done():
				}
			}()
		}
		agents, _ := lease.Value(func(st *varve.Store) any {
			return s.agents(served.Only(st), func() bool { return archived(st) }, lease.Writing)
		}).(http.Handler)
		agents.ServeHTTP(w, r.WithContext(ctx))
	})
}

// archived reports whether st is a memory store that was archived. Nothing may be written to an archived store.
func archived(st *varve.Store) bool {
	c := st.Admin().Config().MemoryStore
	return c != nil && !c.ArchivedAt.IsZero()
}

// ofStore returns a handler that checks requests whose token is confined to certain memory stores. It refuses such a
// request if the store that is served is not one of them. Otherwise the request can use only the store that was
// checked. If the request listens for changes, it ends when another store is served. All other requests are passed on
// unchanged.
func (s *Server) ofStore(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if t := TokenOf(r.Context()); t != nil && t.Stores != nil {
			st, err := s.store.Acquire(r.Context())
			if err != nil {
				s.o.Logger.Error("the store cannot be opened", "err", err)
				refuse(w, r, http.StatusServiceUnavailable, "the store cannot be opened: see the log of the server")
				return
			}
			defer s.store.Release(st)
			if c := st.Admin().Config().MemoryStore; c == nil || !slices.Contains(t.Stores, c.ID) {
				refuse(w, r, http.StatusForbidden,
					"this token does not permit the memory store of this server: use another token")
				return
			}
			ctx, cancel := context.WithCancel(served.Pinned(r.Context(), st))
			defer cancel()
			if listens(r) {
				go func(left <-chan struct{}) {
					select {
					case <-left:
						cancel()
					case <-ctx.Done():
					}
				}(s.store.Left(st))
			}
			r = r.WithContext(ctx)
		}
		next.ServeHTTP(w, r)
	})
}

const metadataPath = "/.well-known/oauth-protected-resource"

// metadata answers that the server requires a bearer token. The answer names no authorization server, because only
// memctl serve token add creates tokens.
func (s *Server) metadata(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"resource":                 s.base(r) + "/mcp",
		"bearer_methods_supported": []string{"header"},
		"resource_name":            "Varve",
	})
}

// base returns the scheme and the host of the URL to which the client sent a request, such as https://example.com.
func (s *Server) base(r *http.Request) string {
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}
