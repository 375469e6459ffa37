package servecmd

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/mcpcmd"
	"github.com/varve-db/varve/mcpserver"
	"github.com/varve-db/varve/metrics"
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
}

// Command returns memctl serve and the commands below it.
func Command(a *cli.App) *cobra.Command {
	s := settings{groups: mcpserver.DefaultGroups()}
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve a store to agents on other machines (HTTP)",
		Long: `Serve a store over HTTP: to agents by the Model Context Protocol at /mcp, with the tools of memctl mcp,
and to people as a page at /, which memctl ui describes.

The store is the one that other commands use in the current folder, or else the one of memctl mcp,
which is created if it is missing. Any number of servers, agents and commands may use it at once.

Every request presents a token, as Authorization: Bearer … or x-api-key; memctl serve token add NAME
makes one. Tokens are in a file, or one is in ` + TokenVariable + `. An address that is not loopback wants a
certificate (--tls-cert, --tls-key), or --plain if a proxy or a tunnel in front of it encrypts.

The page wants a token of memctl serve token add NAME --page. /healthz and /readyz answer without a
token. Requests are logged on stderr, without content. A signal ends the server when the requests that
are under way are answered.`,
		Example: "  memctl serve token add laptop\n  memctl serve\n" +
			"  memctl serve --addr 0.0.0.0:7717 --tls-cert cert.pem --tls-key key.pem\n" +
			"  claude mcp add --transport http memory http://127.0.0.1:7717/mcp --header \"Authorization: Bearer …\"",
		Args: cli.NoArguments,
	}
	f := c.Flags()
	f.StringVar(&s.addr, "addr", "127.0.0.1:7717",
		"`address` to listen on: a host or IP and a port; port 0 chooses one")
	f.StringVar(&s.cert, "tls-cert", "", "`file` of the certificate and those that it depends on (PEM)")
	f.StringVar(&s.key, "tls-key", "", "`file` of the private key (PEM)")
	f.BoolVar(&s.plain, "plain", false, "serve without TLS on an address that is not loopback")
	f.StringSliceVar(&s.hosts, "host", nil, "further `names` of this server, for example behind a proxy")
	f.StringSliceVar(&s.groups, "tools", s.groups,
		"`groups` of tools to offer: "+strings.Join(mcpserver.Groups(), ", "))
	f.IntVar(&s.requests, "max-requests", 256, "maximum `number` of requests under way")
	f.DurationVar(&s.timeout, "timeout", time.Minute, "`time` after which a request is ended")
	f.DurationVar(&s.drain, "drain", 10*time.Second, "`time` for which requests may finish when the server ends")
	c.PersistentFlags().StringVar(&s.tokens, "tokens", "",
		"`file` of tokens (default varve/tokens.json in the user's "+
			"folder of settings)")
	c.RunE = a.DoWhole(func(cmd *cobra.Command, _ []string) error {
		if a.Document != nil {
			return cli.Usagef(cmd.CommandPath(), "a server prints no document: omit --json")
		}
		return serve(cmd, a, &s)
	})
	tokens := a.Group(&cobra.Command{
		Use:   "token",
		Short: "Manage the tokens of memctl serve",
		Long: `Manage the tokens of memctl serve. The file has only the SHA-256 of each, so a token is shown once, when it
is added. A server that runs reads the file again when it changes.`,
		Example: "  memctl serve token add laptop\n  memctl serve token list\n  memctl serve token remove laptop",
	}, addCommand(a, &s), listCommand(a, &s), removeCommand(a, &s))
	c.AddCommand(tokens)
	return c
}

func serve(cmd *cobra.Command, a *cli.App, s *settings) error {
	ctx := cmd.Context()
	for i := range s.groups {
		s.groups[i] = strings.TrimSpace(s.groups[i])
	}
	log := logger(a, slog.LevelInfo)
	tools := mcpserver.Options{Groups: s.groups, Logger: logger(a, slog.LevelWarn), Version: cli.ThisBuild().Version,
		Clock: a.Clock, Evicted: a.Evicted}
	switch err := tools.Validate(); {
	case err != nil:
		return cli.Usagef(cmd.CommandPath(), "--tools: %w", err)
	case len(s.groups) == 0:
		return cli.Usagef(cmd.CommandPath(), "--tools is empty: choose from %s", strings.Join(mcpserver.Groups(),
			", "))
	case s.requests < 1:
		return cli.Usagef(cmd.CommandPath(), "--max-requests %d: must be at least 1", s.requests)
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
	dir, err := a.LocateOrDefault()
	if err != nil {
		return err
	}
	return mcpcmd.Served(ctx, a, dir, tools, a.LocateOrDefault, func(st *varve.Store, tools mcpserver.Options) error {
		var web *server.Server
		registry := prometheus.NewRegistry()
		registry.MustRegister(metrics.New(func() *varve.Store { return web.Store() }), collectors.NewGoCollector(),
			collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
		numbers := promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError})
		var err error
		web, err = serverWithPage(a, st, server.Options{Tokens: tokens, Tools: tools, Hosts: s.hosts,
			Requests: s.requests,
			Timeout:  s.timeout, Drain: s.drain, Logger: log, Metrics: numbers})
		if err != nil {
			return err
		}
		mcpcmd.NoteServing(a, dir)
		a.Note("agents connect to %s/mcp", l.url)
		if tokens.Len() == 0 {
			a.Warn("there is no token, so every request is refused; to make one: memctl serve token add NAME")
		}
		return web.Serve(ctx, l)
	})
}

// logger returns a logger of a level and above on stderr, with -q of errors.
func logger(a *cli.App, level slog.Level) *slog.Logger {
	if a.Quiet {
		level = slog.LevelError
	}
	return slog.New(slog.NewTextHandler(a.Logs(), &slog.HandlerOptions{Level: level}))
}

// openTokens returns the tokens of the file and of the environment.
func openTokens(a *cli.App, s *settings) (*server.Tokens, error) {
	var fixed []server.Token
	if secret := a.Getenv(TokenVariable); secret != "" {
		if len(secret) < server.LeastSecret {
			err := fmt.Errorf("%w: the token in %s has %d bytes, and can be guessed: it needs at least %d",
				varve.ErrInvalid,
				TokenVariable, len(secret), server.LeastSecret)
			return nil, cli.WithFix(err, "set it to 32 random bytes, for example of: openssl rand -hex 32")
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
