package servecmd

import (
	"context"
	"fmt"
	"html"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"os/user"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/mcpcmd"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/mcpserver"
	"github.com/varve-db/varve/served"
	"github.com/varve-db/varve/server"
	"github.com/varve-db/varve/server/page"
)

// BrowserVariable is the environment variable that names the program with which a page is opened, instead of
// the default of the system.
const BrowserVariable = "BROWSER"

// UICommand returns memctl ui, which serves the store's page and opens it in a browser.
func UICommand(a *cli.App) *cobra.Command {
	s := settings{addr: "127.0.0.1:0", requests: 256, timeout: 5 * time.Minute, drain: time.Second}
	var noOpen, readOnly bool
	c := &cobra.Command{
		Use:   "ui",
		Short: "See what agents know, in a browser",
		Long: `Serve the page of a store on this machine, and open it in a browser: search, one memory with its history,
edit, forget, purge, notes, sessions, the log with undo, working memory and health, live.

The command ends with Ctrl-C or its terminal, and the page with it. The page wants a token, which is made at each
start and is in the link that opens. The browser asks nothing but this server; the server sends a query to the
embedding service if one is set.

The store is the one that other commands use in the current folder, or else the one of memctl mcp, which is created if
it is missing. On another machine, forward the port: ssh -L 7718:127.0.0.1:7718 HOST memctl ui --no-open --addr
127.0.0.1:7718.`,
		Example: "  memctl ui\n  memctl ui --read-only\n  memctl ui --no-open --addr 127.0.0.1:7718",
		Args:    cli.NoArguments,
	}
	f := c.Flags()
	f.StringVar(&s.addr, "addr", s.addr, "loopback `address` to listen on: an IP and a port; port 0 chooses one")
	f.BoolVar(&noOpen, "no-open", false, "print the link, and open no browser")
	f.BoolVar(&readOnly, "read-only", false, "the page cannot change anything")
	c.RunE = a.DoWhole(func(cmd *cobra.Command, _ []string) error {
		if a.Document != nil {
			return cli.Usagef(cmd.CommandPath(), "memctl ui prints no JSON document: omit --json")
		}
		return showPage(cmd, a, &s, noOpen, readOnly)
	})
	return c
}

func showPage(cmd *cobra.Command, a *cli.App, s *settings, noOpen, readOnly bool) error {
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGHUP) // the terminal is closed
	defer stop()
	l, err := listen(ctx, cmd.CommandPath(), s)
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }() // Serve has closed it, unless the store could not be opened
	if addr, ok := l.Addr().(*net.TCPAddr); !ok || !addr.IP.IsLoopback() {
		return cli.Usagef(cmd.CommandPath(),
			"--addr %s: must be a loopback address, because memctl ui serves the page only to this machine; memctl "+
				"serve serves the page to others, with TLS", s.addr)
	}
	dir, err := a.LocateOrDefault()
	if err != nil {
		return err
	}
	secret := server.NewSecret()
	tokens, err := server.OpenTokens("", server.Token{Name: person(), Sum: server.SumOf(secret), ReadOnly: readOnly,
		Page: true, Tools: []string{}}) // no tool: it is for the page only
	if err != nil {
		return err
	}
	tools := mcpserver.Options{Groups: mcpserver.DefaultGroups(), Logger: logger(a, slog.LevelWarn),
		Version: cli.ThisBuild().Version, Clock: a.Clock, Evicted: a.Evicted}
	return mcpcmd.Served(ctx, a, dir, tools, a.LocateOrDefault, func(st *served.Store, tools mcpserver.Options) error {
		web, err := serverWithPage(a, st, server.Options{Tokens: tokens, Tools: tools, Requests: s.requests,
			Connections: connections(), Timeout: s.timeout, Drain: s.drain, Logger: logger(a, slog.LevelWarn)})
		if err != nil {
			return err
		}
		mcpcmd.NoteServing(a, dir)
		link := l.url + "/#token=" + secret
		fmt.Fprintln(a.Out, link)
		if err := a.Out.Flush(); err != nil {
			return err
		}
		if !noOpen {
			remove, err := openBrowser(ctx, a, link)
			defer remove()
			if err != nil {
				a.Warn("no browser could be opened: %v; open the link above", err)
			}
		}
		a.Note("press Ctrl-C to stop serving the page")
		return web.Serve(ctx, l)
	})
}

// person returns the name of the writer for changes made on the page: the name of the user.
func person() string {
	u, err := user.Current()
	if err != nil {
		return "ui"
	}
	name := u.Username[strings.LastIndexByte(u.Username, '\\')+1:]
	if name == "" || len(name) > server.MostName || strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.IsPrint(r) || r == unicode.ReplacementChar
	}) {
		return "ui"
	}
	return name
}

// serverWithPage returns a server that serves the API of the store, and the page.
func serverWithPage(a *cli.App, st *served.Store, o server.Options) (*server.Server, error) {
	p, err := page.New(page.Options{Store: st, Clock: a.Clock, Embed: o.Tools.Embed, EmbedModel: o.Tools.EmbedModel})
	if err != nil {
		return nil, err
	}
	o.Page = p
	return server.New(st, o)
}

// openBrowser opens a link in the browser. It passes the link in a file that only the user can read, because
// the arguments of a program are visible to every user of the machine. remove removes the file.
func openBrowser(ctx context.Context, a *cli.App, link string) (remove func(), err error) {
	dir, err := vfs.MkdirTemp("", "varve-ui-") // only the user can enter it
	if err != nil {
		return func() {}, err
	}
	remove = func() { _ = os.RemoveAll(dir) } // the token in it is not valid any more
	file := filepath.Join(dir, "open.html")
	to := html.EscapeString(link)
	text := "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\">" +
		"<meta http-equiv=\"refresh\" content=\"0;url=" + to + "\"><title>Varve</title><a href=\"" + to +
		"\">Open the page</a></html>\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return remove, err
	}
	words := strings.Fields(a.Getenv(BrowserVariable))
	switch {
	case len(words) > 0:
	case runtime.GOOS == "darwin":
		words = []string{"open"}
	case runtime.GOOS == "windows":
		words = []string{"rundll32", "url.dll,FileProtocolHandler"}
	default:
		words = []string{"xdg-open"}
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), words[0], append(words[1:],
		file)...) // it outlives this program
	cmd.SysProcAttr = ownSession() // Ctrl-C and the end of the terminal are for this program
	if err := cmd.Start(); err != nil {
		return remove, err
	}
	go func() { _ = cmd.Wait() }() // a browser may stay until it is closed
	return remove, nil
}
