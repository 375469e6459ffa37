package server

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/mcpserver"
	"github.com/varve-db/varve/memorystores"
	"github.com/varve-db/varve/served"
)

// Options are the settings of a server. The zero value of each field except Tokens selects its default.
type Options struct {
	Tokens *Tokens // required
	// Tools are the options of the tools that agents get; see package mcpserver. The server sets Permits, Project and
	// Writing; it also sets Embed, if that is nil and there is an EmbedModel.
	Tools mcpserver.Options
	// Hosts are additional host names of the server, without a port, such as those of a proxy or in the DNS. On a
	// loopback address the loopback names are always accepted. On any other address, all names are accepted if Hosts
	// is empty.
	Hosts []string
	// Metrics answers requests to /metrics; nil: 404.
	Metrics http.Handler
	// MemoryStores answers the paths below /v1/, for tokens without a project and without groups of tools; nil:
	// 404. Its Options.Caller must be CallerOf. The caller runs its Run and calls its Close.
	MemoryStores *memorystores.Stores
	// Page answers the page; nil: 404. Its answers at / and below /static/ need no token, and must have no data
	// of the store. Those below /page/ and at /stream need a token that may use the page. See package
	// server/page.
	Page http.Handler

	Body int64 // maximum size of a request's body in bytes; 0 means 32 MiB
	// maximum number of running requests, and separately of those that listen for changes; 0 means 256
	Requests int
	// maximum number of open connections; beyond it the one that has waited longest for a request is closed. 0 means
	// 4096
	Connections int
	Timeout     time.Duration // time limit of a request that does not listen for changes; 0 means a minute
	Drain       time.Duration // how long Serve lets running requests finish when it ends; 0 means 10 s
	Logger      *slog.Logger  // logs a line for each request, and errors; nil discards them
}

// The defaults of Options.
const (
	defaultBody        = 32 << 20
	defaultRequests    = 256
	defaultConnections = 4096
	defaultTimeout     = time.Minute
	defaultDrain       = 10 * time.Second
)

// Limits of a connection.
const (
	mostHeader    = 64 << 10
	headerTimeout = 10 * time.Second
	pieceTimeout  = 10 * time.Second // for each piece of the answer to a client that listens for changes
	idleTimeout   = 2 * time.Minute
	// lastRequests is a time limit after the server was told to end: the headers of a client's next request must
	// arrive within this time.
	lastRequests = time.Second
)

// checkEvery is the interval at which the server checks whether the tokens of running requests are still valid.
const checkEvery = time.Second

// Server serves a store over HTTP, or the memory stores of Options.MemoryStores, or both.
type Server struct {
	o         Options
	store     *served.Store // nil: the server serves only Options.MemoryStores
	mux       *http.ServeMux
	slots     chan struct{} // limits the number of running requests: each puts one element into the channel
	listening chan struct{} // the same for requests that listen for changes
	failing   chan struct{} // limits the number of delayed answers to wrong tokens, in the same way
	current   requests
	conns     connections
}

// New returns a server for a store, which must stay open as long as the server is used. st may be nil if
// Options.MemoryStores is set. Then a request to /mcp uses the memory store that the path names, or the only memory
// store that the token permits.
func New(st *served.Store, o Options) (*Server, error) {
	if o.Tokens == nil {
		return nil, fmt.Errorf("%w: a server needs Options.Tokens", varve.ErrInvalid)
	}
	if st == nil && o.MemoryStores == nil {
		return nil, fmt.Errorf("%w: a server needs a store or Options.MemoryStores", varve.ErrInvalid)
	}
	if err := o.Tools.Validate(); err != nil {
		return nil, err
	}
	setDefault(&o.Body, defaultBody)
	setDefault(&o.Requests, defaultRequests)
	setDefault(&o.Connections, defaultConnections)
	setDefault(&o.Timeout, defaultTimeout)
	setDefault(&o.Drain, defaultDrain)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{o: o, store: st, mux: http.NewServeMux(), slots: make(chan struct{}, o.Requests),
		listening: make(chan struct{}, o.Requests), failing: make(chan struct{}, MostFailures)}
	s.current.of = map[*request]context.CancelFunc{}
	s.conns.most, s.conns.open = o.Connections, map[net.Conn]*list.Element{}
	s.routes()
	return s, nil
}

func setDefault[T int | int64 | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// routes adds the handlers of all paths to the server.
func (s *Server) routes() {
	if s.store != nil {
		s.mux.Handle("/mcp", s.authenticated(s.ofStore(s.agents(s.store, func() bool { return false }, nil))))
	} else {
		s.mux.Handle("/mcp", s.authenticated(s.agentsOfStores()))
		s.mux.Handle("/mcp/{store}", s.authenticated(s.agentsOfStores()))
	}
	if s.o.MemoryStores != nil {
		for _, r := range s.o.MemoryStores.Routes() {
			s.mux.Handle(r.Pattern, s.authenticated(r.Handler))
		}
	}
	s.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok") })
	s.mux.HandleFunc("GET /readyz", s.ready)
	s.mux.HandleFunc("GET "+metadataPath, s.metadata)
	if s.o.Metrics != nil {
		s.mux.Handle("GET /metrics", s.authenticated(s.o.Metrics))
	}
	if s.o.Page != nil {
		s.mux.Handle("GET /{$}", s.o.Page)
		s.mux.Handle("GET /static/", s.o.Page)
		s.mux.Handle("/page/", s.authenticated(s.ofStore(forPage(s.o.Page))))
		s.mux.Handle("GET "+streamPath, s.authenticated(s.ofStore(forPage(s.o.Page))))
	}
}

// agents returns the handler of MCP for a store. While frozen returns true, the handler's tools do not write to the
// store. writing is the value for mcpserver.Options.Writing.
func (s *Server) agents(st *served.Store, frozen func() bool,
	writing func(ctx context.Context) (end func(), err error)) http.Handler {
	tools := s.o.Tools
	tools.Writing = writing
	tools.Permits = func(info *auth.TokenInfo, tool mcpserver.Tool) bool {
		return permits(info, tool) && (tool.ReadOnly || !frozen())
	}
	tools.Project = projectOf
	if tools.Embed == nil && tools.EmbedModel != "" {
		tools.Embed = func(ctx context.Context, texts []string) ([][]float32, error) {
			return st.Current().Vectors().Embed(ctx, texts)
		}
	}
	agents := mcpserver.New(st, tools)
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return agents },
		&mcp.StreamableHTTPOptions{
			Stateless: true, JSONResponse: true, Logger: slog.New(slog.DiscardHandler), MaxRequestBodyBytes: s.o.Body,
			DisableLocalhostProtection:   true, // guard checks the header Host for all paths
			PropagateRequestCancellation: true,
		})
}

// Handler returns the handler of all paths, for a program that uses its own http.Server. The program must run Watch
// while it serves. Its http.Server should have limits for headers, time and connections, like the one that Serve uses.
func (s *Server) Handler() http.Handler { return s.guard(s.mux) }

// Serve serves requests on a listener until ctx ends, and then returns nil. If the listener fails, Serve returns the
// error. Serve closes the listener in both cases.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	web := &http.Server{
		Handler: s.Handler(), MaxHeaderBytes: mostHeader, ReadHeaderTimeout: headerTimeout, ReadTimeout: s.o.Timeout,
		IdleTimeout: idleTimeout, ConnState: s.conns.changed, ConnContext: withConn,
		ErrorLog: slog.NewLogLogger(s.o.Logger.Handler(), slog.LevelDebug),
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	go s.Watch(watching)
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	s.current.endListeners()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.o.Drain)
	defer cancel()
	unused := time.AfterFunc(min(lastRequests, s.o.Drain), s.conns.closeWaiting)
	defer unused.Stop()
	if err := web.Shutdown(last); err != nil {
		s.o.Logger.Warn("running requests were cancelled at the end of the server", "after", s.o.Drain)
		s.current.endAll()
		_ = web.Close()
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Watch ends running requests whose token was removed, or has other values of ReadOnly, Page, Project, Tools or Stores
// than when the request began. While the token file cannot be read, Watch ends no requests. It runs until ctx ends.
// Serve calls Watch.
func (s *Server) Watch(ctx context.Context) {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.current.endUnless(func(t *Token) bool {
				now, err := s.o.Tokens.Find(t.Sum)
				return err != nil || now != nil && now.sameRights(t)
			})
		}
	}
}

// ready answers requests to /readyz: status 200 if the store can be used, otherwise 503.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	if err := s.usable(r.Context()); err != nil {
		s.o.Logger.Warn("not ready", "err", err)
		plain(w, http.StatusServiceUnavailable,
			"the store cannot be used: see the log of the server, or run memctl status")
		return
	}
	plain(w, http.StatusOK, "ready")
}

// usable returns the problem because of which the store cannot be used, or nil if it can be used. A read-only store can
// be used.
func (s *Server) usable(ctx context.Context) error {
	if s.store == nil {
		return s.o.MemoryStores.Ready(ctx)
	}
	// Acquire opens a replaced store again, also if clients request no path except /readyz.
	st, err := s.store.Acquire(ctx)
	if err != nil {
		return err
	}
	defer s.store.Release(st)
	if h := st.Health(ctx); !h.Writable && h.ReadOnly == nil && len(h.Problems) > 0 {
		return h.Problems[0]
	}
	return nil
}

// refuse answers a request with an HTTP status and a message of one line. Below /v1/ the answer is an error of the
// Memory Stores API, and otherwise plain text.
func refuse(w http.ResponseWriter, r *http.Request, status int, line string) {
	if strings.HasPrefix(r.URL.Path, "/v1/") {
		memorystores.WriteError(w, status, line)
		return
	}
	plain(w, status, line)
}

// plain answers a request with one line of text.
func plain(w http.ResponseWriter, status int, line string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(line + "\n"))
}
