package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/fswatch"
	"github.com/varve-db/varve/mcpserver"
)

const memoryFileVariable = "MEMORY_FILE_PATH" // of the reference server

func (a *app) mcpCommand() *cobra.Command {
	groups := mcpserver.DefaultGroups()
	c := &cobra.Command{
		Use:   "mcp",
		Short: "Serve a store to an agent (Model Context Protocol)",
		Long: `Serve a store over stdin and stdout to an agent that speaks the Model Context Protocol.
It takes the place of @modelcontextprotocol/server-memory, with the same tools and
results; any number of agents may use one store at once.

The store is the one that --store or MEMCTL_STORE names; else, where MEMORY_FILE_PATH names
the file of the server it replaces, the folder beside it: memory.jsonl.varve beside
memory.jsonl, into which the file, if it is there, is taken over at the first start and then
left alone; else varve/memory in the user's data folder. It is made where there is none.

Where VARVE_EMBED_URL names a service that makes embeddings, recall looks for meaning.
What goes wrong is told on stderr; stdout carries only the protocol.`,
		Example: "  memctl mcp\n  memctl mcp --store ~/agent/memory --tools graph\n  claude mcp add memory -- memctl mcp",
		Args:    noArguments,
	}
	c.Flags().StringSliceVar(&groups, "tools", groups, "`groups` of tools to offer: "+strings.Join(mcpserver.Groups(), ", "))
	c.RunE = a.do(func(cmd *cobra.Command, _ []string) error {
		if a.document != nil {
			return usagef(cmd.CommandPath(), "stdout carries the protocol: leave --json out")
		}
		if len(groups) == 0 {
			return usagef(cmd.CommandPath(), "--tools is empty: there are %s", strings.Join(mcpserver.Groups(), ", "))
		}
		o := mcpserver.Options{Groups: groups, Logger: a.logger(), Version: thisBuild().Version, Clock: a.clock}
		if err := o.Validate(); err != nil {
			return usagef(cmd.CommandPath(), "--tools: %w", err)
		}
		dir, file, err := a.mcpStore()
		if err != nil {
			return err
		}
		return a.serve(cmd.Context(), dir, file, o)
	})
	return c
}

// mcpStore is the store's folder, and the file to take over, if there may be one.
func (a *app) mcpStore() (dir, file string, err error) {
	if dir := a.named(); dir != "" {
		return dir, "", nil
	}
	if file := a.get(memoryFileVariable); file != "" {
		if file, err = filepath.Abs(file); err != nil {
			return "", "", fmt.Errorf("finding %s: %w", memoryFileVariable, err)
		}
		return file + ".varve", file, nil
	}
	dir, err = dataFolder(a.get, runtime.GOOS)
	return dir, "", err
}

// dataFolder is where a user's programs keep their data, and ours in it.
func dataFolder(get func(string) string, system string) (string, error) {
	const own = "varve/memory"
	if base := get("XDG_DATA_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, own), nil // by the specification a relative one does not count
	}
	var base []string
	switch system {
	case "windows":
		if dir := get("LOCALAPPDATA"); dir != "" {
			return filepath.Join(dir, own), nil
		}
		base = []string{get("USERPROFILE"), "AppData", "Local"}
	case "darwin":
		base = []string{get("HOME"), "Library", "Application Support"}
	default:
		base = []string{get("HOME"), ".local", "share"}
	}
	if base[0] == "" {
		return "", fmt.Errorf("%w: there is no home folder; name the store by --store or %s", varve.ErrNoStore, storeVariable)
	}
	return filepath.Join(append(base, own)...), nil
}

func (a *app) serve(ctx context.Context, dir, file string, o mcpserver.Options) error {
	e, err := a.embedder()
	if err != nil {
		return err
	}
	more := func(v *varve.Options) {
		v.NoBackground, v.Watcher = false, fswatch.New(fswatch.Options{})
		v.Logger = o.Logger
		if e != nil {
			v.Embed, v.EmbedModel = e.Embed, e.Model()
			o.Embed = e.Embed
		}
	}
	return a.withIn(ctx, dir, create, more, func(st *varve.Store) error {
		if file != "" {
			if err := a.takeOver(ctx, st, file); err != nil {
				return err
			}
		}
		a.note("serving the store %s", dir)
		return a.serveOn(ctx, st, o)
	})
}

func (a *app) takeOver(ctx context.Context, st *varve.Store, file string) error {
	t, err := mcpserver.TakeOver(ctx, st, file, a.clock())
	if err != nil {
		return err
	}
	switch {
	case t.Before && t.Changed:
		a.note("%s has changed since it was taken over; to bring in what is new: memctl import --from server-memory %s --store %s", file, shellQuote(file), shellQuote(st.Stats().Dir))
	case t.Entities+t.Relations+len(t.Aside) > 0:
		a.note("took over %d entities and %d relations from %s, which stays as it is", t.Entities, t.Relations, file)
	}
	for i, s := range t.Aside {
		if i == asideTold {
			a.note("and %d more lines; memctl get import:server-memory shows them", len(t.Aside)-i)
			break
		}
		a.note("%s:%d was kept aside in the memory import:server-memory: %s", file, s.Line, s.Why)
	}
	return nil
}

// asideTold is how many lines are named: a client need not read stderr.
const asideTold = 20

// lastAnswers is how long a call may go on when the server is told to end.
const lastAnswers = 5 * time.Second

// serveOn ends well at the end of stdin, and at a signal.
func (a *app) serveOn(ctx context.Context, st *varve.Store, o mcpserver.Options) error {
	ended := make(chan error, 1)
	go func() { ended <- mcpserver.New(st, o).Run(ctx, mcpserver.Stdio(a.in, a.stdout, o.Logger)) }()
	select {
	case err := <-ended:
		if ctx.Err() != nil {
			return nil
		}
		return err
	case <-ctx.Done():
	}
	select {
	case <-ended:
	case <-time.After(lastAnswers): // nobody reads stdout
	}
	return nil
}

// logger tells on stderr what goes wrong.
func (a *app) logger() *slog.Logger {
	level := slog.LevelWarn
	if a.quiet {
		level = slog.LevelError
	}
	return slog.New(slog.NewTextHandler(stderrOf{a}, &slog.HandlerOptions{Level: level}))
}

// stderrOf writes between the messages, not into them.
type stderrOf struct{ a *app }

func (w stderrOf) Write(p []byte) (int, error) {
	w.a.messages.Lock()
	defer w.a.messages.Unlock()
	return w.a.errOut.Write(p)
}
