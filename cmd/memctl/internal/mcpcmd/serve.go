package mcpcmd

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/locate"
	"github.com/varve-db/varve/cmd/memctl/internal/projectcmd"
	"github.com/varve-db/varve/mcpserver"
	"github.com/varve-db/varve/served"
)

func Command(a *cli.App) *cobra.Command {
	groups, named, structured := []string(nil), "", false
	c := &cobra.Command{
		Use:   "mcp",
		Short: "Serve a store to an agent (Model Context Protocol)",
		Long: `Serve a store over stdin and stdout to an agent that speaks the Model Context Protocol: eight tools to
remember, find, correct and take back. Any number of agents may use one store at once. With --tools
graph, and by itself where MEMORY_FILE_PATH is set, it has the tools of
@modelcontextprotocol/server-memory instead, which it replaces.

Memories belong to a project: that of the client's root or of the current folder, by its git
repository, or the one that --project or VARVE_PROJECT names. Those with scope user, and those that
are older than projects, are shared by all; the graph is too. --project none serves the shared part
alone. See memctl help project.

The store is the one that --store or VARVE_STORE names. Otherwise, if MEMORY_FILE_PATH names the
file of the replaced server, it is the folder beside that file: memory.jsonl.varve beside
memory.jsonl. The first start that finds the file not empty takes it over into the store; the file
is not changed and not read again. Otherwise it is varve/memory in the user's data folder. A
missing store is created; a store without write permission is served read-only. A store of another
user that is there, or a link that leads out of its folder or its project, is refused unless --store
or VARVE_STORE names it.

If VARVE_EMBED_URL names an embedding service, recall searches by meaning too. Errors go to stderr;
stdout carries only the protocol.`,
		Example: "  memctl mcp\n  memctl mcp --store ~/agent/memory --tools graph\n  claude mcp add memory -- memctl mcp",
		Args:    cli.NoArguments,
	}
	c.Flags().StringSliceVar(&groups, "tools", nil, "`groups` of tools to offer: "+
		mcpserver.GroupNames()+"; default "+strings.Join(mcpserver.DefaultGroups(), ", ")+
		", or graph where MEMORY_FILE_PATH is set")
	c.Flags().StringVar(&named, "project", "", "the `name` of the project; "+projectcmd.None+" means only the part "+
		"that all projects share")
	c.Flags().BoolVar(&structured, "structured", false, "also answer with structured content, for clients that are "+
		"programs")
	c.RunE = a.DoWhole(func(cmd *cobra.Command, _ []string) error {
		if a.Document != nil {
			return cli.Usagef(cmd.CommandPath(), "stdout carries the protocol: omit --json")
		}
		groups, err := chosen(a, cmd, groups)
		if err != nil {
			return err
		}
		o := mcpserver.Options{Groups: groups, Logger: logger(a), Version: cli.ThisBuild().Version, Clock: a.Clock,
			Evicted: a.Evicted, Structured: structured, Session: a.Getenv(cli.SessionVariable)}
		if o.Project, err = projectOf(a, cmd.CommandPath(), named); err != nil {
			return err
		}
		dir, file, err := mcpStore(a, cmd.CommandPath())
		if err != nil {
			return err
		}
		again := func() (string, error) {
			dir, _, err := mcpStore(a, cmd.CommandPath())
			return dir, err
		}
		return serveStore(cmd.Context(), a, dir, file, o, again)
	})
	return c
}

// chosen returns the groups of tools that the server offers: those of --tools. Without --tools, the result is the
// default groups, or only the group graph if the environment variable MEMORY_FILE_PATH of the reference server is set.
func chosen(a *cli.App, cmd *cobra.Command, groups []string) ([]string, error) {
	if !cmd.Flags().Changed("tools") {
		if a.Getenv(MemoryFileVariable) != "" {
			return []string{mcpserver.Graph}, nil
		}
		return mcpserver.DefaultGroups(), nil
	}
	groups, err := mcpserver.ChooseGroups(groups)
	if err != nil {
		return nil, cli.Usagef(cmd.CommandPath(), "--tools: %w", err)
	}
	return groups, nil
}

// mcpStore returns the folder of the store to serve. file is the file of the reference server that is to be imported
// into the store. If no file is to be imported, the path in file is empty.
func mcpStore(a *cli.App, command string) (dir string, file *memoryFile, err error) {
	file = &memoryFile{}
	if dir := a.Named(); dir != "" {
		_, err = absolutePath(command, a.NamedBy(), dir)
		return dir, file, err
	}
	if path := a.Getenv(MemoryFileVariable); path != "" {
		if file.path, err = absolutePath(command, MemoryFileVariable, path); err != nil {
			return "", nil, err
		}
		if !filepath.IsAbs(path) { // the old server resolves it relative to its own program
			a.Note("%s is not an absolute path: using %s, relative to the folder in which the server was started",
				MemoryFileVariable, file.path)
		}
		dir = file.path + ".varve"
		return dir, file, admit(a, dir, file.path)
	}
	if dir, err = cli.DataFolder(a.Getenv, runtime.GOOS); err == nil {
		err = a.Admit(locate.DataFolder, dir, nameIt(dir))
	}
	return dir, file, err
}

// admit returns an error if the file of the replaced server, or the store in the folder dir beside the file, may come
// from another user: its owner is another user, or a link leads to it.
func admit(a *cli.App, dir, file string) error {
	if err := a.Admit(locate.BesideFile, dir, nameIt(dir)); err != nil {
		return err
	}
	fix := "if this is the right file, set " + MemoryFileVariable + " to its real path, or name the store with " +
		"--store or " + cli.StoreVariable
	return a.Admit(locate.SourceFile, file, fix)
}

func nameIt(dir string) string {
	return "to use this store, add --store " + cli.ShellQuote(dir)
}

// absolutePath returns path as an absolute path. source is the name of the flag or the variable from which path
// comes. If path begins with ~ or has a variable, absolutePath returns an error: servers are rarely started by a
// shell, which would have expanded the path.
func absolutePath(command, source, path string) (string, error) {
	if v := projectcmd.Unexpanded(path); v != "" && v != "~" {
		return "", cli.Usagef(command, "%s is %s, and the variable %s in it was not expanded: give the absolute "+
			"path", source, path, v)
	}
	if path == "~" || strings.HasPrefix(path, "~/") || strings.HasPrefix(path, `~\`) {
		return "", cli.Usagef(command, "%s is %s, and no shell has expanded the ~: give the absolute path", source,
			path)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("finding %s of %s: %w", path, source, err)
	}
	return abs, nil
}

func serveStore(
	ctx context.Context, a *cli.App, dir string, file *memoryFile, o mcpserver.Options, again func() (string, error),
) error {
	if err := file.look(dir); err != nil {
		return err
	}
	return Served(ctx, a, dir, o, again, func(st *served.Store, o mcpserver.Options) error {
		if err := takeOver(ctx, a, st.Current(), file); err != nil {
			return err
		}
		NoteServing(a, dir)
		if _, ok := cli.Terminal(a.In); ok {
			a.Note("waiting for a client on stdin: let your agent start memctl mcp, or press Ctrl-C to end it")
		}
		err := serveOn(ctx, a, st, o)
		if _, ok := cli.Terminal(a.In); ok && err == nil {
			err = ctx.Err() // Ctrl-C of a user; a client that ends its server causes no failure
		}
		return err
	})
}

// How long a server that must end because of a signal waits for running calls, and then, after it has cancelled
// them, for them to end.
const (
	lastAnswers = 600 * time.Millisecond
	lastCalls   = 300 * time.Millisecond
)

// serveOn serves the store until stdin ends or a signal arrives; neither is an error.
func serveOn(ctx context.Context, a *cli.App, st *served.Store, o mcpserver.Options) error {
	defer limitMemory(a.Getenv)()
	ended := make(chan error, 1)
	client := mcpserver.Stdio(a.In, answers(a), o.Logger)
	go func() { ended <- mcpserver.New(st, o).Run(ctx, client) }()
	select {
	case err := <-ended:
		if ctx.Err() != nil || cli.BrokenPipe(err) {
			return nil
		}
		return err
	case <-client.Ended(): // calls that are still running are cancelled
	case <-ctx.Done():
		select {
		case <-ended:
			return nil
		case <-time.After(lastAnswers): // stdout is not read, or a call takes longer
		}
		client.Abandon()
	}
	select {
	case err := <-ended:
		if cli.BrokenPipe(err) || ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
	case <-time.After(lastCalls):
	}
	if n := client.Undone(); n > 0 && ctx.Err() == nil {
		return cli.WithFix(fmt.Errorf("%w: %s canceled %v after the end of stdin", varve.ErrOutcomeUnknown,
			cli.Count(int(n), "call was", "calls were"), mcpserver.Patience),
			"read the answers to all calls before closing stdin")
	}
	return nil
}

// mcpMemory is the memory limit of the garbage collector in a server, in bytes. A server needs a limit, because the
// requests of clients decide how much garbage there is. For a store that needs more than half of it, limitMemory sets
// a higher limit.
const mcpMemory = 128 << 20

// mcpCache is the size in bytes of the cache of documents in a server. The cache is small, so that most of mcpMemory
// is left for the calls: the cache also holds documents that were just written, and the garbage collector cannot free
// these.
const mcpCache = 16 << 20

// limitMemory sets the memory limit of the garbage collector, unless the user has set one. The returned
// function restores the previous limit.
func limitMemory(get func(string) string) func() {
	if get("GOMEMLIMIT") != "" {
		return func() {}
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	before := debug.SetMemoryLimit(max(mcpMemory, 2*int64(live[0].Value.Uint64())))
	return func() { debug.SetMemoryLimit(before) }
}

// logger returns a logger that writes warnings and errors to stderr.
func logger(a *cli.App) *slog.Logger {
	level := slog.LevelWarn
	if a.Quiet {
		level = slog.LevelError
	}
	return slog.New(slog.NewTextHandler(a.Logs(), &slog.HandlerOptions{Level: level}))
}

// answers returns the writer for messages to the client. If stdout is a terminal, because a user types the requests,
// the writer escapes the messages like all other output.
func answers(a *cli.App) io.Writer {
	if !a.Out.Screen {
		return a.Out.Stream
	}
	return flushed{a.Out}
}

// flushed writes JSON and flushes it at once.
type flushed struct{ out *cli.Output }

func (f flushed) Write(b []byte) (int, error) {
	n, err := f.out.Data(cli.JSON).Write(b)
	if err == nil {
		err = f.out.Flush()
	}
	return n, err
}
