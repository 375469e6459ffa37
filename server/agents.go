package server

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/varve-db/varve/mcpserver"
)

// permits reports whether the holder of a token may use a tool.
func permits(info *auth.TokenInfo, tool mcpserver.Tool) bool {
	if info == nil {
		return false
	}
	t, ok := info.Extra[tokenInfoKey].(*Token)
	return ok && (!t.ReadOnly || tool.ReadOnly) && (t.Tools == nil || slices.Contains(t.Tools, tool.Group))
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
