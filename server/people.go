package server

import "net/http"

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
