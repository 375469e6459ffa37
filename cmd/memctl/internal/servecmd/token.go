package servecmd

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/projectcmd"
	"github.com/varve-db/varve/mcpserver"
	"github.com/varve-db/varve/server"
)

// TokenVariable is the environment variable with an access token that the server accepts in addition to those
// in the token file.
const TokenVariable = "VARVE_TOKEN"

// tokensPath returns the path of the token file.
func tokensPath(a *cli.App, s *settings) (string, error) {
	if s.tokens != "" {
		return s.tokens, nil
	}
	base := a.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(base) {
		dir, err := os.UserConfigDir()
		if err != nil {
			return "", cli.WithFix(fmt.Errorf("finding the user's configuration folder: %w", err), "give the path of "+
				"the token file with --tokens FILE")
		}
		base = dir
	}
	return filepath.Join(base, "varve", "tokens.json"), nil
}

// shownToken is an access token in the JSON output, without its secret.
type shownToken struct {
	Name     string     `json:"name"`
	Token    string     `json:"token,omitempty"`
	ReadOnly bool       `json:"read_only"`
	Page     bool       `json:"page,omitempty"`
	Tools    []string   `json:"tools"`
	Project  string     `json:"project,omitempty"`
	Stores   []string   `json:"stores,omitempty"`
	Created  *time.Time `json:"created"`
}

func shown(t *server.Token, secret string) shownToken {
	s := shownToken{Name: t.Name, Token: secret, ReadOnly: t.ReadOnly, Page: t.Page, Tools: t.Tools,
		Project: t.Project, Stores: t.Stores}
	if !t.Created.IsZero() {
		s.Created = &t.Created
	}
	return s
}

func addCommand(a *cli.App, s *settings) *cobra.Command {
	var readOnly, people bool
	var tools, stores []string
	var name string
	c := &cobra.Command{
		Use:   "add NAME",
		Short: "Make a token and print it",
		Long: `Make a token, add it to the token file, and print it. The token is shown only once. For each write made
with this token, the history shows NAME.`,
		Example: "  memctl serve token add laptop\n  memctl serve token add dashboard --read-only --tools memory",
		Args:    cobra.ExactArgs(1),
		RunE: a.Do(func(cmd *cobra.Command, args []string) error {
			path, err := tokensPath(a, s)
			if err != nil {
				return err
			}
			if people && (name != "" || cmd.Flags().Changed("tools")) {
				return cli.Usagef(cmd.CommandPath(), "--page shows the memories of all projects, whatever --project and --tools "+
					"say: make one token for the page and another for agents")
			}
			if cmd.Flags().Changed("stores") && len(stores) == 0 {
				return cli.Usagef(cmd.CommandPath(), "--stores is empty: give the ids of memory stores, or omit "+
					"--stores for all")
			}
			if cmd.Flags().Changed("tools") && !slices.Contains(tools, mcpserver.AllGroups) { // all: also those to come
				if tools, err = mcpserver.ChooseGroups(tools); err != nil {
					return cli.Usagef(cmd.CommandPath(), "--tools: %w", err)
				}
			} else {
				tools = nil
			}
			id := ""
			if name != "" {
				registry, _ := projectcmd.Of(a)
				records, err := registry.Find(name)
				if err != nil {
					return err
				}
				id = records[0].Project
			}
			secret := server.NewSecret()
			t := server.Token{Name: args[0], Sum: server.SumOf(secret), ReadOnly: readOnly, Tools: tools, Project: id,
				Stores: stores, Page: people, Created: a.Clock().UTC().Truncate(time.Second)}
			err = server.AddToken(cmd.Context(), path, t)
			if errors.Is(err, server.ErrTokenExists) {
				err = cli.WithFix(fmt.Errorf("%w: %w", varve.ErrInvalid, err),
					"choose another name, or first remove the token with this name: memctl serve token remove "+
						cli.ShellQuote(t.Name))
			}
			if err != nil {
				return err
			}
			a.Document.Member("added", shown(&t, secret))
			fmt.Fprintln(a.Out, secret)
			a.Note("the token was added to %s; it is not shown again", path)
			return nil
		}),
	}
	c.Flags().BoolVar(&readOnly, "read-only", false, "the token may not change anything")
	c.Flags().StringSliceVar(&stores, "stores", nil, "`ids` of the memory stores that the token may use (default all)")
	c.Flags().BoolVar(&people, "page", false, "the token may use the page for people, which shows the memories of all "+
		"projects")
	c.Flags().StringVar(&name, "project", "", "the project that the token may use, by its id or `name`; see memctl "+
		"project list (default only the part that all projects share)")
	c.Flags().StringSliceVar(&tools, "tools", nil,
		"`groups` of tools that the token may use: "+mcpserver.GroupNames()+" (default all that are served)")
	return c
}

func listCommand(a *cli.App, s *settings) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List tokens",
		Long:    "List the names of the tokens in the file, what each may do, and when it was made.",
		Example: "  memctl serve token list\n  memctl serve token list --json",
		Args:    cli.NoArguments,
		RunE: a.Do(func(cmd *cobra.Command, _ []string) error {
			path, err := tokensPath(a, s)
			if err != nil {
				return err
			}
			list, err := server.ReadTokens(path)
			if err != nil {
				return err
			}
			return printTokens(cmd.Context(), a, list, path)
		}),
	}
}

func printTokens(ctx context.Context, a *cli.App, list []server.Token, path string) error {
	l := a.List("tokens", nil, cli.Column{Name: "ID"}, cli.Column{Name: "ACCESS"}, cli.Column{Name: "TOOLS"},
		cli.Column{Name: "CREATED"}, cli.Column{Name: "SHA-256"})
	for _, t := range list {
		access, tools := "write", "all"
		if t.ReadOnly {
			access = "read"
		}
		if t.Page {
			access += ",page"
		}
		if t.Tools != nil {
			tools = strings.Join(t.Tools, ",")
		}
		cells := []string{t.Name, access, tools, t.Created.Format(time.DateOnly), hex.EncodeToString(t.Sum[:4])}
		if err := l.Add(ctx, cli.Item{ID: t.Name, JSON: shown(&t, ""),
			Text:  func() string { return strings.Join(cells, "\t") },
			Cells: func() []string { return cells },
		}); err != nil {
			return err
		}
	}
	if err := l.End(ctx); err != nil {
		return err
	}
	if len(list) == 0 {
		a.Note("%s has no tokens; memctl serve token add NAME makes one", path)
	}
	return nil
}

func removeCommand(a *cli.App, s *settings) *cobra.Command {
	return &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove a token",
		Long: "Remove a token from the token file. Running servers then refuse the token, and end the requests made " +
			"with it within a second.",
		Example: "  memctl serve token remove laptop",
		Args:    cobra.ExactArgs(1),
		RunE: a.Do(func(cmd *cobra.Command, args []string) error {
			path, err := tokensPath(a, s)
			if err != nil {
				return err
			}
			err = server.RemoveToken(cmd.Context(), path, args[0])
			if errors.Is(err, server.ErrNoToken) {
				err = cli.WithFix(fmt.Errorf("%w: %w", varve.ErrNotFound, err), "memctl serve token list shows the "+
					"names")
			}
			if err != nil {
				return err
			}
			a.Document.Member("removed", args[0])
			a.Say("removed %s", args[0])
			return nil
		}),
	}
}
