package server

import "net/http"

// forPage returns a handler that passes on only requests whose token permits the page.
func forPage(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if t := TokenOf(r.Context()); t == nil || !t.Page {
			plain(w, http.StatusForbidden,
				"this token does not permit the page: make a token with memctl serve token add NAME --page")
			return
		}
		next.ServeHTTP(w, r)
	})
}
