package server

import (
	"context"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/auth"
)

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

// forPage returns a handler that passes on only requests whose token may use the page.
func forPage(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if t := TokenOf(r.Context()); t == nil || !t.Page {
			plain(w, http.StatusForbidden, "this token may not use the page: make one with memctl serve token add NAME --page")
			return
		}
		next.ServeHTTP(w, r)
	})
}
