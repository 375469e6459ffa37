package servecmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/mcpcmd"
	"github.com/varve-db/varve/cmd/memctl/internal/place"
	"github.com/varve-db/varve/cmd/memctl/internal/seal"
	"github.com/varve-db/varve/mcpserver"
	"github.com/varve-db/varve/memorystores"
	"github.com/varve-db/varve/metrics"
	"github.com/varve-db/varve/served"
	"github.com/varve-db/varve/server"
)

// settings are the flags of memctl serve.
type settings struct {
	addr      string
	cert, key string
	plain     bool
	tokens    string
	hosts     []string
	groups    []string
	requests  int
	timeout   time.Duration
	drain     time.Duration
	stores    string
	open      int
	trash     time.Duration
}

// Command returns memctl serve and the commands below it.
func Command(a *cli.App) *cobra.Command {
	s := settings{groups: mcpserver.DefaultGroups()}
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve a store to agents on other machines (HTTP)",
		Long: `Serve a store over HTTP: to agents by the Model Context Protocol at /mcp, with the tools of memctl mcp,
to applications by the Memory Stores API at /v1/memory_stores, over its notes, and to people as a page at
/, which memctl ui describes.

The store is the one that other commands use in the current folder, or else the one of memctl mcp,
which is created if it is missing. Any number of servers, agents and commands may use it at once.

With --stores DIR each store below a folder is a memory store of the API, which also creates and
deletes them. Agents connect to /mcp/ID, where ID is the id of a store. With a token that may use only
one store they may also connect to /mcp. A deleted store is kept in DIR/.trash for the time of --trash.

Every request presents a token, as Authorization: Bearer … or x-api-key; memctl serve token add NAME
makes one. Tokens are in a file, or one is in ` + TokenVariable + `. An address that is not loopback needs a
certificate (--tls-cert, --tls-key), or --plain if a proxy or a tunnel in front of it encrypts.

The page needs a token that was made with memctl serve token add NAME --page. /healthz and /readyz answer
without a token. Requests are logged on stderr, without content. After a signal, the server answers the
requests in progress and then ends.`,
		Example: "  memctl serve token add laptop\n  memctl serve\n" +
			"  memctl serve --stores memories\n" +
			"  memctl serve --addr 0.0.0.0:7717 --tls-cert cert.pem --tls-key key.pem\n" +
			"  claude mcp add --transport http memory http://127.0.0.1:7717/mcp --header \"Authorization: Bearer …\"",
		Args: cli.NoArguments,
	}
	f := c.Flags()
	f.StringVar(&s.addr, "addr", "127.0.0.1:7717",
		"`address` to listen on: a host or IP and a port; port 0 chooses one")
	f.StringVar(&s.cert, "tls-cert", "", "`file` with the certificate of the server and its intermediate "+
		"certificates (PEM)")
	f.StringVar(&s.key, "tls-key", "", "`file` of the private key (PEM)")
	f.BoolVar(&s.plain, "plain", false, "serve without TLS on an address that is not loopback")
	f.StringSliceVar(&s.hosts, "host", nil, "further `names` of this server, for example behind a proxy")
	f.StringSliceVar(&s.groups, "tools", s.groups,
		"`groups` of tools to offer: "+mcpserver.GroupNames())
	f.IntVar(&s.requests, "max-requests", 256, "maximum `number` of requests in progress")
	f.DurationVar(&s.timeout, "timeout", time.Minute, "`time` after which a request is ended")
	f.DurationVar(&s.drain, "drain", 10*time.Second, "`time` for which requests may finish when the server ends")
	f.StringVar(&s.stores, "stores", "", "serve each store below a `folder`, which is created if it is missing, by "+
		"the Memory Stores API")
	f.IntVar(&s.open, "max-open", 64, "maximum `number` of stores of --stores that are open at once")
	f.DurationVar(&s.trash, "trash", 30*24*time.Hour, "`time` for which deleted stores are kept; 0 means forever")
	c.PersistentFlags().StringVar(&s.tokens, "tokens", "", "`file` with the tokens (default varve/tokens.json in the "+
		"user's configuration folder)")
	c.RunE = a.DoWhole(func(cmd *cobra.Command, _ []string) error {
		if a.Document != nil {
			return cli.Usagef(cmd.CommandPath(), "memctl serve prints no JSON document: omit --json")
		}
		return serve(cmd, a, &s)
	})
	tokens := a.Group(&cobra.Command{
		Use:   "token",
		Short: "Manage the tokens of memctl serve",
		Long: `Manage the tokens of memctl serve. The file of tokens (--tokens) has only the SHA-256 of each
token, so memctl shows a token only once, when it is added. A running server reads the file again when
the file changes.`,
		Example: "  memctl serve token add laptop\n  memctl serve token list\n  memctl serve token remove laptop",
	}, addCommand(a, &s), listCommand(a, &s), removeCommand(a, &s))
	c.AddCommand(tokens)
	return c
}

func serve(cmd *cobra.Command, a *cli.App, s *settings) error {
	ctx := cmd.Context()
	groups, err := mcpserver.ChooseGroups(s.groups)
	if err != nil {
		return cli.Usagef(cmd.CommandPath(), "--tools: %w", err)
	}
	log := logger(a, slog.LevelInfo)
	tools := mcpserver.Options{Groups: groups, Logger: logger(a, slog.LevelWarn), Version: cli.ThisBuild().Version,
		Clock: a.Clock, Evicted: a.Evicted}
	switch {
	case s.requests < 1:
		return cli.Usagef(cmd.CommandPath(), "--max-requests %d: must be at least 1", s.requests)
	case s.open < 1:
		return cli.Usagef(cmd.CommandPath(), "--max-open %d: must be at least 1", s.open)
	case s.trash < 0:
		return cli.Usagef(cmd.CommandPath(), "--trash must not be negative")
	case s.stores == "" && (cmd.Flags().Changed("max-open") || cmd.Flags().Changed("trash")):
		return cli.Usagef(cmd.CommandPath(), "--max-open and --trash can be used only with --stores")
	case s.stores != "" && cmd.Flags().Changed("store"):
		return cli.Usagef(cmd.CommandPath(), "--stores serves each store below a folder: omit --store")
	case s.timeout <= 0 || s.drain <= 0:
		return cli.Usagef(cmd.CommandPath(), "--timeout and --drain must be more than 0")
	}
	tokens, err := openTokens(a, s)
	if err != nil {
		return err
	}
	l, err := listen(ctx, cmd.CommandPath(), s)
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }() // Serve has closed it, unless the store could not be opened
	a.FinishWithin(s.drain)
	o := server.Options{Tokens: tokens, Hosts: s.hosts, Requests: s.requests, Connections: connections(),
		Timeout: s.timeout, Drain: s.drain, Logger: log}
	if s.stores != "" {
		o.Tools = tools
		return serveStores(ctx, a, s, l, o)
	}
	dir, err := a.LocateOrDefault()
	if err != nil {
		return err
	}
	return mcpcmd.Served(ctx, a, dir, tools, a.LocateOrDefault, func(st *served.Store, tools mcpserver.Options) error {
		registry, calls := prometheus.NewRegistry(), metrics.NewCalls()
		tools.Observe = func(o mcpserver.Operation) { calls.Observe(o.Method, o.Tool, o.Error, o.Took) }
		registry.MustRegister(calls, metrics.New(st.Current), collectors.NewGoCollector(),
			collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
		o.Tools, o.Metrics = tools, numbersOf(registry)
		var err error
		o.MemoryStores, err = memorystores.Single(st, memorystores.Options{Caller: server.CallerOf, Clock: a.Clock,
			Logger: o.Logger, Name: nameOf(dir)})
		if err != nil {
			return err
		}
		web, err := serverWithPage(a, st, o)
		if err != nil {
			return err
		}
		mcpcmd.NoteServing(a, dir)
		a.Note("agents connect to %s/mcp", l.url)
		warnWithoutTokens(a, tokens)
		return web.Serve(ctx, l)
	})
}

// serveStores serves all stores in a folder, each under its name.
func serveStores(ctx context.Context, a *cli.App, s *settings, l *listener, o server.Options) error {
	keep := s.trash
	if keep == 0 {
		keep = -1
	}
	e, err := a.Embedder()
	if err != nil {
		return err
	}
	warnings := logger(a, slog.LevelWarn)
	more, err := a.Embedding(func(v *varve.Options) {
		v.CacheBytes, v.WatchFiles = memorystores.StoreCache, true
		v.Clock, v.Logger, v.Writer = a.Clock, warnings, &varve.Writer{Program: "memctl serve"}
	})
	if err != nil {
		return err
	}
	stores, err := memorystores.Open(s.stores, memorystores.Options{Caller: server.CallerOf, Clock: a.Clock,
		Logger: warnings, MostOpen: s.open, Trash: keep,
		Open: func(ctx context.Context, dir string, mustExist bool) (*varve.Store, error) {
			v := varve.Options{MustExist: mustExist, Remote: place.Open, SealRemote: seal.Recipients}
			more(&v)
			return varve.Open(ctx, dir, &v)
		}})
	if err != nil {
		return err
	}
	registry, calls := prometheus.NewRegistry(), metrics.NewCalls()
	o.Tools.Evicted = nil // Evicted cannot tell in which store
	o.Tools.Observe = func(o mcpserver.Operation) { calls.Observe(o.Method, o.Tool, o.Error, o.Took) }
	if e != nil {
		o.Tools.EmbedModel = e.Model()
	}
	registry.MustRegister(calls, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	o.MemoryStores, o.Metrics = stores, numbersOf(registry)
	web, err := server.New(nil, o)
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		stores.Run(running)
	}()
	a.Note("serving the stores in %s", stores.Folder())
	a.Note("applications connect to %s", l.url)
	a.Note("agents connect to %s/mcp/ID, where ID is the id of a store", l.url)
	warnWithoutTokens(a, o.Tokens)
	err = web.Serve(ctx, l)
	stop()
	<-ended
	return errors.Join(err, stores.Close())
}

func warnWithoutTokens(a *cli.App, tokens *server.Tokens) {
	if tokens.Len() == 0 {
		a.Warn("there is no token, so every request is refused; to make one: memctl serve token add NAME")
	}
}

// connections returns how many connections a server may have open: at most half of the files that the process may
// have open, so that the others remain for stores. 0 means the default of the server.
func connections() int {
	files, _ := cli.OpenFiles()
	if files == 0 || files > 8192 {
		return 0
	}
	return max(int(files)/2, 1)
}

func numbersOf(registry *prometheus.Registry) http.Handler {
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError})
}

// nameOf returns the name of the folder at the path dir. The name serves as the name of a store that has none of its
// own.
func nameOf(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return filepath.Base(dir)
}

// logger returns a logger that writes messages of the given level and above to stderr; with -q it writes only
// errors.
func logger(a *cli.App, level slog.Level) *slog.Logger {
	if a.Quiet {
		level = slog.LevelError
	}
	return slog.New(slog.NewTextHandler(a.Logs(), &slog.HandlerOptions{Level: level}))
}

// openTokens returns the access tokens in the token file, and the token in the environment variable TokenVariable.
func openTokens(a *cli.App, s *settings) (*server.Tokens, error) {
	var fixed []server.Token
	if secret := a.Getenv(TokenVariable); secret != "" {
		if len(secret) < server.LeastSecret {
			err := fmt.Errorf("%w: the token in %s has only %d bytes, and could be guessed: a token needs at least "+
				"%d bytes",
				varve.ErrInvalid,
				TokenVariable, len(secret), server.LeastSecret)
			return nil, cli.WithFix(err, "set the variable to 32 random bytes, such as the output of: openssl rand "+
				"-hex 32")
		}
		fixed = append(fixed, server.Token{Name: TokenVariable, Sum: server.SumOf(secret)})
	}
	path, err := tokensPath(a, s)
	if err != nil && len(fixed) > 0 {
		path = "" // no home folder, and none is needed
	} else if err != nil {
		return nil, err
	}
	return server.OpenTokens(path, fixed...)
}
