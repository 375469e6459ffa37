package server

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
)

// FailureDelay is the time by which the answer to an invalid token is delayed. MostFailures is the maximum number of
// answers that are delayed at the same time.
const (
	FailureDelay = 300 * time.Millisecond
	MostFailures = 64
)

// guard returns a handler that logs each request, makes the checks that do not depend on the path, and passes the
// request to next if all checks pass.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		s.conns.began(r.Context())
		l := &logged{ResponseWriter: w}
		by := &who{}
		r = r.WithContext(context.WithValue(r.Context(), whoKey{}, by))
		defer func() {
			_, path, _ := strings.Cut(r.Pattern, "/") // a client may have sent a secret in place of a path
			s.o.Logger.Info("request", "method", r.Method, "path", "/"+path, "status", l.status, "bytes", l.bytes,
				"duration", time.Since(began), "token", by.name, "from", r.RemoteAddr)
		}()
		l.Header().Set("X-Content-Type-Options", "nosniff")
		l.Header().Set("Cache-Control", "no-store")
		slots := s.slots
		if listens(r) {
			slots = s.listening
		}
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		default:
			l.Header().Set("Retry-After", "1")
			refuse(l, r, http.StatusServiceUnavailable, "the server has too many running requests: try again later")
			return
		}
		switch {
		case !s.ownHost(r):
			refuse(l, r, http.StatusForbidden,
				"the Host header does not name this server: if the name in the header is right, start the server with "+
					"--host NAME")
		case !s.ownOrigin(r):
			refuse(l, r, http.StatusForbidden,
				"the request comes from a web page of another site; this server accepts only requests of its own page")
		case r.Header.Get(methodHeader) == listen && !listens(r):
			refuse(l, r, http.StatusBadRequest,
				"the header "+methodHeader+": "+listen+" is permitted only at /mcp, and only with "+
					"the header "+versionHeader+": "+listenSince+" or later")
		default:
			next.ServeHTTP(l, r)
		}
	})
}

// ownHost reports whether the Host header of a request names this server. The check protects against DNS rebinding: a
// web page of another site can reach this server if the name of that site resolves to the server's address, but the
// browser then sends the name of that site as Host.
func (s *Server) ownHost(r *http.Request) bool {
	host := withoutPort(r.Host)
	if slices.ContainsFunc(s.o.Hosts, func(h string) bool { return strings.EqualFold(h, host) }) {
		return true
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil || isLoopback(withoutPort(local.String())) {
		return isLoopback(host)
	}
	return len(s.o.Hosts) == 0
}

// ownOrigin reports whether a request comes from a web page of this server, or from a program that is not a web page.
// It also returns true if isVisit does.
func (s *Server) ownOrigin(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "cross-site", "same-site":
		return isVisit(r)
	}
	given, present := r.Header["Origin"]
	if !present {
		return true
	}
	if len(given) != 1 {
		return false
	}
	u, err := url.Parse(given[0])
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host)
}

// isVisit reports whether a browser sent the request because a person followed a link from another site, or from a
// file, to the page. Such a request is safe: the answer at / has no data of the store, and a page of another site
// cannot read the answer.
func isVisit(r *http.Request) bool {
	return r.Method == http.MethodGet && r.URL.Path == "/" && r.Header.Get("Sec-Fetch-Mode") == "navigate" &&
		r.Header.Get("Sec-Fetch-Dest") == "document"
}

func withoutPort(addr string) string {
	if host, _, err := net.SplitHostPort(addr); err == nil {
		return host
	}
	return strings.TrimSuffix(strings.TrimPrefix(addr, "["), "]")
}

func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// authenticated returns a handler that passes on only requests with a valid token. It puts the token into the
// auth.TokenInfo of the request's context.
func (s *Server) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, err := s.o.Tokens.Find(SumOf(secretIn(r)))
		switch {
		case token != nil:
			s.serveAs(token, w, r, next)
		case err != nil:
			s.o.Logger.Error("the token file cannot be read", "err", err)
			refuse(w, r, http.StatusServiceUnavailable,
				"the server cannot read its token file: see the log of the server")
		default:
			s.refuseToken(w, r)
		}
	})
}

// secretIn returns the secret of the access token that a request presents, or "" if the request presents none.
func secretIn(r *http.Request) string {
	if scheme, secret, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(secret)
	}
	return r.Header.Get("x-api-key")
}

// refuseToken answers a request without a valid token with status 401, after FailureDelay. If too many such answers
// are waiting already, it answers with status 429 at once.
func (s *Server) refuseToken(w http.ResponseWriter, r *http.Request) {
	select {
	case s.failing <- struct{}{}:
	default:
		w.Header().Set("Retry-After", "1")
		refuse(w, r, http.StatusTooManyRequests, "too many requests with invalid tokens: try again later")
		return
	}
	wait := time.NewTimer(FailureDelay)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-r.Context().Done():
	}
	<-s.failing
	w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+s.base(r)+metadataPath+`"`)
	text := "no valid token: send the header Authorization: Bearer TOKEN with a token from memctl serve token add"
	refuse(w, r, http.StatusUnauthorized, text)
}

// serveAs passes a request to next as a request with the token t: it puts t into the request's context and the name of
// t into the log line. It limits the time of the request, unless the request listens for changes.
func (s *Server) serveAs(t *Token, w http.ResponseWriter, r *http.Request, next http.Handler) {
	if by, ok := r.Context().Value(whoKey{}).(*who); ok {
		by.name = t.Name
	}
	q := &request{token: t, listens: listens(r)}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	// A ResponseWriter without deadlines, such as that of a test, returns an error.
	deadline, until := http.NewResponseController(w), time.Time{}
	if !q.listens {
		until = time.Now().Add(s.o.Timeout)
		ctx, cancel = context.WithDeadline(ctx, until)
		defer cancel()
		_ = deadline.SetWriteDeadline(until.Add(headerTimeout))
	}
	if q.listens {
		w = &timed{ResponseWriter: w, c: deadline}
	}
	_ = deadline.SetReadDeadline(until)
	s.current.add(q, cancel)
	defer s.current.remove(q)
	// The middleware of the SDK that verifies tokens demands that they expire, and does not read x-api-key.
	info := &auth.TokenInfo{UserID: t.Name, Extra: map[string]any{tokenInfoKey: t}}
	verify := func(context.Context, string, *http.Request) (*auth.TokenInfo, error) { return info, nil }
	r.Header.Set("Authorization", "Bearer x") // the handlers must not see the secret
	r.Header.Del("x-api-key")
	r = r.WithContext(ctx)
	auth.RequireBearerToken(verify, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(next).ServeHTTP(w, r)
}

// methodHeader is the header with the method of an MCP call. If versionHeader is listenSince or later, the SDK
// refuses a call whose method differs from the header, and also a batch of calls.
const (
	methodHeader  = "Mcp-Method"
	versionHeader = "Mcp-Protocol-Version"
	listenSince   = "2026-07-28"
)

// listen is the MCP method of calls that last until the client ends them.
const listen = "subscriptions/listen"

// streamPath is the path from which a page in a browser receives messages about changes.
const streamPath = "/stream"

// listens reports whether a request listens for changes. Such a request lasts until its client ends it.
func listens(r *http.Request) bool {
	if r.URL.Path == streamPath {
		return true
	}
	return r.Header.Get(methodHeader) == listen && r.Header.Get(versionHeader) >= listenSince &&
		(r.URL.Path == "/mcp" || strings.HasPrefix(r.URL.Path, "/mcp/"))
}

// timed is the http.ResponseWriter of a request that listens for changes. It sets a time limit for each piece of the
// answer. The SDK notifies one listener after the other: without the limit, a client that does not read would block the
// notifications of all other clients.
type timed struct {
	http.ResponseWriter
	c *http.ResponseController
}

func (t *timed) Write(b []byte) (int, error) {
	_ = t.c.SetWriteDeadline(time.Now().Add(pieceTimeout))
	return t.ResponseWriter.Write(b)
}

// Unwrap returns the underlying writer, for http.ResponseController.
func (t *timed) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// tokenInfoKey is the key in auth.TokenInfo.Extra under which the request's *Token is stored.
const tokenInfoKey = "varve"

// who holds the name of a request's token for the log line. serveAs sets the name.
type who struct{ name string }

type whoKey struct{}

// logged is an http.ResponseWriter that records the status and the size of the answer, for the log line.
type logged struct {
	http.ResponseWriter
	status int
	bytes  int64
}

func (l *logged) WriteHeader(status int) {
	if l.status == 0 {
		l.status = status
	}
	l.ResponseWriter.WriteHeader(status)
}

func (l *logged) Write(b []byte) (int, error) {
	if l.status == 0 {
		l.status = http.StatusOK
	}
	n, err := l.ResponseWriter.Write(b)
	l.bytes += int64(n)
	return n, err
}

// Unwrap returns the underlying writer, for http.ResponseController.
func (l *logged) Unwrap() http.ResponseWriter { return l.ResponseWriter }
