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

// FailureDelay is how long the answer to a wrong token is delayed. MostFailures is the maximum number of
// answers that are delayed at the same time.
const (
	FailureDelay = 300 * time.Millisecond
	MostFailures = 64
)

// guard returns a handler that logs each request and makes the checks that every request must pass, whatever its
// path.
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
			refuse(l, r, http.StatusServiceUnavailable, "too many requests are under way: try again")
			return
		}
		switch {
		case !s.ownHost(r):
			refuse(l, r, http.StatusForbidden,
				"the Host header names another server: start this one with --host NAME if it is one of "+
					"its names")
		case !s.ownOrigin(r):
			refuse(l, r, http.StatusForbidden, "requests of web pages of other sites are refused")
		case r.Header.Get(methodHeader) == listen && !listens(r):
			refuse(l, r, http.StatusBadRequest, "the header "+methodHeader+": "+listen+" is for /mcp, with the header "+
				versionHeader+": "+listenSince+" or later")
		default:
			next.ServeHTTP(l, r)
		}
	})
}

// ownHost reports whether the Host header of a request names this server. It protects against a web page of
// another site whose name server answers with a loopback address: the browser sends the name of that site.
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

// ownOrigin reports whether a request comes from a web page of this server, or from no web page.
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

// isVisit reports whether a request is a person following a link to the page from another site or a file. Such
// a request is safe: the answer at / has no data of the store, and a page of another site cannot read it.
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

// authenticated returns a handler that passes on only requests with a valid token. The token is in the
// auth.TokenInfo of the request's context.
func (s *Server) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, err := s.o.Tokens.Find(SumOf(secretIn(r)))
		switch {
		case token != nil:
			s.serveAs(token, w, r, next)
		case err != nil:
			s.o.Logger.Error("tokens cannot be read", "err", err)
			refuse(w, r, http.StatusServiceUnavailable, "the tokens of the server cannot be read: see its log")
		default:
			s.refuseToken(w, r)
		}
	})
}

// secretIn returns the secret of the access token that a request presents, "" if it presents none.
func secretIn(r *http.Request) string {
	if scheme, secret, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(secret)
	}
	return r.Header.Get("x-api-key")
}

// refuseToken answers a request without a valid token, after FailureDelay.
func (s *Server) refuseToken(w http.ResponseWriter, r *http.Request) {
	select {
	case s.failing <- struct{}{}:
	default:
		w.Header().Set("Retry-After", "1")
		refuse(w, r, http.StatusTooManyRequests, "too many requests with wrong tokens")
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
	text := "no valid token: send one of memctl serve token add as Authorization: Bearer …"
	refuse(w, r, http.StatusUnauthorized, text)
}

// serveAs passes a request to next in the name of the token t.
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
	// The SDK has a middleware that verifies tokens; it wants their expiration, and does not know x-api-key.
	info := &auth.TokenInfo{UserID: t.Name, Extra: map[string]any{tokenInfoKey: t}}
	verify := func(context.Context, string, *http.Request) (*auth.TokenInfo, error) { return info, nil }
	r.Header.Set("Authorization", "Bearer x") // what was presented is not needed any more
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

// streamPath is the path at which the page listens for changes.
const streamPath = "/stream"

// listens reports whether a request listens for changes, so that it lasts until its client ends it.
func listens(r *http.Request) bool {
	if r.URL.Path == streamPath {
		return true
	}
	return r.Header.Get(methodHeader) == listen && r.Header.Get(versionHeader) >= listenSince &&
		(r.URL.Path == "/mcp" || strings.HasPrefix(r.URL.Path, "/mcp/"))
}

// timed is the http.ResponseWriter of a request that listens for changes: each piece of its answer has a time limit.
// The SDK notifies one listener after the other, so that a client which does not read would keep all others from
// hearing of changes.
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

// tokenInfoKey is the key in auth.TokenInfo.Extra of the request's *Token.
const tokenInfoKey = "varve"

// who stores the name of a request's token, which the handler sets, for the log line.
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
