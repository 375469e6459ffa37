package server

import (
	"context"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/auth"
)

// TokenOf returns the token that a request has presented, by the context of the request; nil if it has presented none.
func TokenOf(ctx context.Context) *Token {
	info := auth.TokenInfoFromContext(ctx)
	if info == nil {
		return nil
	}
	t, _ := info.Extra[tokenInfoKey].(*Token)
	return t
}

// forPage passes on requests with a token that may use the page.
func forPage(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if t := TokenOf(r.Context()); t == nil || !t.Page {
			plain(w, http.StatusForbidden, "this token may not use the page: make one with memctl serve token add NAME --page")
			return
		}
		next.ServeHTTP(w, r)
	})
}
