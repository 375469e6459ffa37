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
)

// permits reports whether the holder of a token may use a tool.
func permits(info *auth.TokenInfo, tool mcpserver.Tool) bool {
	if info == nil {
		return false
	}
	t, ok := info.Extra[tokenInfoKey].(*Token)
	return ok && (!t.ReadOnly || tool.ReadOnly) && (t.Tools == nil || slices.Contains(t.Tools, tool.Group))
}

// projectOf returns the project of a token.
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

// tokenOf returns the token of a request, nil if it has none.
func tokenOf(ctx context.Context) *Token {
	info := auth.TokenInfoFromContext(ctx)
	if info == nil {
		return nil
	}
	t, _ := info.Extra[tokenInfoKey].(*Token)
	return t
}

// CallerOf returns the holder of the token of a request, for memorystores.Options. A token with a project, or with
// groups of tools, is confined to what these reach, which notes are not.
func CallerOf(ctx context.Context) (memorystores.Caller, bool) {
	t := tokenOf(ctx)
	if t == nil || t.Project != "" || t.Tools != nil {
		return memorystores.Caller{}, false
	}
	return memorystores.Caller{Name: t.Name, ReadOnly: t.ReadOnly, Stores: t.Stores}, true
}

// ofStore refuses tokens for other stores than the one that is served.
func (s *Server) ofStore(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if t := tokenOf(r.Context()); t != nil && t.Stores != nil {
			var c *varve.MemoryStoreConfig
			if st := s.Store(); st != nil {
				c = st.Admin().Config().MemoryStore
			}
			if c == nil || !slices.Contains(t.Stores, c.ID) {
				refuse(w, r, http.StatusForbidden, "the token is for other stores")
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

const metadataPath = "/.well-known/oauth-protected-resource"

// metadata says that the server wants a bearer token, and names no server that issues some: tokens are made by
// memctl serve token add.
func (s *Server) metadata(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"resource":                 s.base(r) + "/mcp",
		"bearer_methods_supported": []string{"header"},
		"resource_name":            "Varve",
	})
}

// base returns the URL of the server as the client knows it, without a path.
func (s *Server) base(r *http.Request) string {
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}
