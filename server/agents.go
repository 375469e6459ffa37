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

// projectOf returns the project to which the access token of a client is confined.
func projectOf(_ context.Context, of mcpserver.Origin) (mcpserver.Project, error) {
	if of.Token == nil {
		return mcpserver.Project{}, nil
	}
	t, ok := of.Token.Extra[tokenInfoKey].(*Token)
	if !ok {
		return mcpserver.Project{}, nil
	}
	return mcpserver.Project{ID: t.Project, Name: t.Project}, nil
}

// TokenOf returns the access token that a request has presented, from the context of the request; nil if there
// is none.
func TokenOf(ctx context.Context) *Token {
	info := auth.TokenInfoFromContext(ctx)
	if info == nil {
		return nil
	}
	t, _ := info.Extra[tokenInfoKey].(*Token)
	return t
}

// CallerOf returns the caller of a request, for memorystores.Options, by the request's access token. A token that
// is confined to a project, or to groups of tools, may not use the Memory Stores API, because it may not use notes.
func CallerOf(ctx context.Context) (memorystores.Caller, bool) {
	t := TokenOf(ctx)
	if t == nil || t.Project != "" || t.Tools != nil {
		return memorystores.Caller{}, false
	}
	return memorystores.Caller{Name: t.Name, ReadOnly: t.ReadOnly, Stores: t.Stores}, true
}

// agentsOfStores serves MCP for the stores of Options.MemoryStores: for the store that the path names, or, without
// one, for the only store that the token may use.
func (s *Server) agentsOfStores() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t, id := TokenOf(r.Context()), r.PathValue("store")
		switch {
		case t == nil: // cannot happen: authenticated passes on only requests with a token
			refuse(w, r, http.StatusForbidden, "the token may not use this path")
			return
		case id == "" && len(t.Stores) != 1:
			refuse(w, r, http.StatusBadRequest, "the token may use more than one store: connect to /mcp/ID, where ID is the id "+
				"of one, or make a token with memctl serve token add NAME --stores ID")
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
				s.o.Logger.Error("a store cannot be used", "store", id, "err", err)
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

// archived reports whether a store is archived, so that nothing may be written to it.
func archived(st *varve.Store) bool {
	c := st.Admin().Config().MemoryStore
	return c != nil && !c.ArchivedAt.IsZero()
}

// ofStore returns a handler that refuses a request whose token names memory stores, unless the store that is served
// is one of them. Such a request can use only the store that was checked; if it listens for changes, it ends when
// another store is served. All other requests are passed on unchanged.
func (s *Server) ofStore(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if t := TokenOf(r.Context()); t != nil && t.Stores != nil {
			st, err := s.store.Acquire(r.Context())
			if err != nil {
				s.o.Logger.Error("the store cannot be used", "err", err)
				refuse(w, r, http.StatusServiceUnavailable, "the store cannot be used: see the log of the server")
				return
			}
			defer s.store.Release(st)
			if c := st.Admin().Config().MemoryStore; c == nil || !slices.Contains(t.Stores, c.ID) {
				refuse(w, r, http.StatusForbidden, "the token is for other stores")
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

// metadata answers that the server requires a bearer token. It names no authorization server: tokens are
// created by memctl serve token add.
func (s *Server) metadata(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"resource":                 s.base(r) + "/mcp",
		"bearer_methods_supported": []string{"header"},
		"resource_name":            "Varve",
	})
}

// base returns the URL, without a path, by which the client of a request knows the server.
func (s *Server) base(r *http.Request) string {
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}
