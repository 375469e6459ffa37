package projectcmd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/project"
)

// Variable is the environment variable that names the project of memctl mcp. The flag --project has precedence.
const Variable = "VARVE_PROJECT"

// Of returns the registry and the finder of the user.
func Of(a *cli.App) (*Registry, *Finder) {
	home := a.Getenv("HOME")
	if home == "" {
		home = a.Getenv("USERPROFILE")
	}
	if real, err := filepath.EvalSymlinks(home); err == nil {
		home = real
	}
	return NewRegistry(env.StateFolder(a.Getenv, runtime.GOOS)), NewFinder(a.Getenv, home)
}

// Command returns memctl project, the group of commands for projects.
func Command(a *cli.App) *cobra.Command {
	return a.Group(&cobra.Command{
		Use:   "project",
		Short: "Manage the projects of memctl mcp",
		Long: `Manage the projects that memctl mcp keeps apart. A project is a random id, kept in the user's state
folder for a git repository (all its worktrees), for a root that the client offers, or for a name
that --project gives. A memory has the id of its project as metadata.varve_project. All projects share
the memories without a project.`,
		Example: `  memctl project list
  memctl project join api
  memctl project move api ~/work/api
  memctl project merge old-api api`,
	}, listCommand(a), joinCommand(a), moveCommand(a), mergeCommand(a))
}

// listed is a project in the JSON output of project list.
type listed struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	Memories int      `json:"memories"` // number of memories of the project in the store
	Places   []string `json:"places"`
}

func projects(records []Record, counts map[string]int) []listed {
	var all []listed
	at := func(id string) *listed {
		if i := slices.IndexFunc(all, func(l listed) bool { return l.ID == id }); i >= 0 {
			return &all[i]
		}
		all = append(all, listed{ID: id, Places: []string{}, Memories: counts[id]})
		return &all[len(all)-1]
	}
	for _, rec := range records {
		l := at(rec.Project)
		if l.Name == "" || strings.HasPrefix(rec.file, "name-") {
			l.Name = rec.Name
		}
		if rec.Place != "" && !slices.Contains(l.Places, rec.Place) {
			l.Places = append(l.Places, rec.Place)
		}
	}
	for id := range counts {
		if id != "" {
			at(id)
		}
	}
	slices.SortFunc(all, func(a, b listed) int { return strings.Compare(a.Name+"\x00"+a.ID, b.Name+"\x00"+b.ID) })
	return all
}

func listCommand(a *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "list",
		Short: "List projects",
		Long: `List the projects of this user and those in the store: on a terminal as a table, otherwise one per
line with id, name, number of memories and places, separated by tabs. A project of another user or
machine has no name here.`,
		Example: "  memctl project list\n  memctl project list --json",
		Args:    cli.NoArguments,
		RunE: a.Do(func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			registry, _ := Of(a)
			records, err := registry.All()
			if err != nil {
				return err
			}
			return a.With(ctx, cli.Read, func(st *varve.Store) error {
				counts, err := project.Count(ctx, st)
				if counts == nil {
					return err
				}
				if err != nil {
					a.Fail(err)
				}
				l := a.List("projects", nil, cli.Column{Name: "ID"}, cli.Column{Name: "NAME"},
					cli.Column{Name: "MEMORIES", Right: true}, cli.Column{Name: "PLACES"})
				all := projects(records, counts)
				for _, p := range all {
					places := make([]string, len(p.Places))
					for i, place := range p.Places {
						places[i] = cli.PrintableID(place)
					}
					cells := []string{p.ID, cli.PrintableID(p.Name), strconv.Itoa(p.Memories), strings.Join(places, ", ")}
					if err := l.Add(ctx, cli.Item{ID: p.ID, JSON: p, Text: func() string { return strings.Join(cells, "\t") },
						Cells: func() []string { return cells }}); err != nil {
						return err
					}
				}
				if err := l.End(ctx); err != nil {
					return err
				}
				a.ListEnd(cmd, len(all), "", false, func() string { return "no projects" })
				a.Note("%s in the shared part of the store", cli.Count(counts[""], "memory is", "memories are"))
				return nil
			})
		}),
	}
	a.OutputFlag(c, cli.FormTable, cli.FormJSON, cli.FormJSONL, cli.FormID)
	return c
}

// named is a project in the JSON output of the other commands.
type named struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Place string `json:"place"`
}

// placeOf returns the place of the folder that args[i] names. If args is too short to have this argument, placeOf
// returns the place of the current folder.
func placeOf(a *cli.App, f *Finder, args []string, i int) (string, error) {
	dir, err := a.Getwd()
	if len(args) > i {
		dir, err = args[i], nil
	}
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", fmt.Errorf("%s is not a folder: %w", cli.PrintableID(dir), varve.ErrInvalid)
	}
	return f.Place(dir, true)
}

func joinCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "join NAME [DIR]",
		Short: "Confirm that a folder uses a named project",
		Long: `Confirm that the folder DIR, or the current one, may use the project that memctl mcp --project NAME
made for another folder. A repository whose configuration names that project is refused until a user
has confirmed it with this command.`,
		Example: "  memctl project join api\n  memctl project join api ~/work/api-docs",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return cli.Usagef(cmd.CommandPath(), "give the NAME of a project, and at most one folder")
			}
			return nil
		},
		RunE: a.Do(func(cmd *cobra.Command, args []string) error {
			registry, finder := Of(a)
			place, err := placeOf(a, finder, args, 1)
			if err != nil {
				return err
			}
			rec, err := registry.Join(args[0], place)
			if err != nil {
				return err
			}
			if a.Document != nil {
				a.Document.Member("project", named{rec.Project, rec.Name, place})
				return nil
			}
			fmt.Fprintf(a.Out, "%s may use project %s (%s)\n", cli.PrintableID(orNowhere(place)),
				cli.PrintableID(rec.Name), rec.Project)
			return nil
		}),
	}
}

func moveCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "move PROJECT DIR",
		Short: "Give a project to the folder to which its repository was moved",
		Long: `Record that the repository or folder of a project, given by its id or name, was moved to DIR. Places of
the project that no longer exist are forgotten. If DIR already has another project, that project is
kept in the store: memctl project merge joins the two.`,
		Example: "  memctl project move api ~/work/api",
		Args:    cli.Exactly(2, "a project and a folder"),
		RunE: a.Do(func(cmd *cobra.Command, args []string) error {
			registry, finder := Of(a)
			records, err := registry.Find(args[0])
			if err != nil {
				return err
			}
			place, err := placeOf(a, finder, args, 1)
			if err == nil && place == "" {
				err = fmt.Errorf("%s is your home folder or the root folder, and not in a repository: such a folder "+
					"cannot have a project: %w", cli.PrintableID(args[1]), varve.ErrInvalid)
			}
			if err != nil {
				return err
			}
			id, name := records[0].Project, nameOf(place)
			if was, err := registry.get(file("place", place)); err == nil && was.Project != id {
				a.Note("%s belonged to the project %s until now", cli.PrintableID(place), was.Project)
			}
			if err := registry.set(file("place", place), Record{Project: id, Name: name, Place: place}); err != nil {
				return err
			}
			for _, rec := range records {
				if _, err := os.Stat(rec.Place); rec.Place == place || rec.Place == "" || err == nil {
					continue
				}
				if !strings.HasPrefix(rec.file, "name-") {
					err = os.Remove(filepath.Join(registry.dir, rec.file))
				} else {
					rec.Place = place
					err = registry.set(rec.file, rec)
				}
				if err != nil {
					return err
				}
			}
			if a.Document != nil {
				a.Document.Member("project", named{id, name, place})
				return nil
			}
			fmt.Fprintf(a.Out, "project %s belongs to %s now\n", id, cli.PrintableID(place))
			return nil
		}),
	}
}

func mergeCommand(a *cli.App) *cobra.Command {
	var o project.MergeOptions
	c := &cobra.Command{
		Use:   "merge FROM INTO",
		Short: "Give the memories and notes of a project to another one",
		Long: `Give the memories and the notes of the project FROM to the project INTO, and let the folders of FROM use
INTO. FROM and INTO are ids or names of projects. If INTO is shared, all projects see these memories and
notes. memctl undo takes the change back. Working memory cannot be given to another project: if FROM
has working memory, nothing is changed, unless --leave-working leaves it in FROM, where no agent of
INTO finds it.`,
		Example: "  memctl project merge old-api api\n  memctl project merge notes shared",
		Args:    cli.Exactly(2, "two projects"),
		RunE: a.Do(func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			registry, _ := Of(a)
			from, err := registry.Find(args[0])
			if err != nil {
				return err
			}
			into := []Record{{}}
			if args[1] != "shared" {
				if into, err = registry.Find(args[1]); err != nil {
					return err
				}
			}
			if from[0].Project == into[0].Project {
				return cli.Usagef(cmd.CommandPath(), "FROM and INTO are the same project")
			}
			return a.With(ctx, cli.Write, func(st *varve.Store) error {
				done, err := project.Merge(ctx, st, from[0].Project, into[0].Project, o)
				if w := (*project.WorkingError)(nil); errors.As(err, &w) {
					return cli.WithFix(err, "list the working memory with memctl working list and delete it with "+
						"memctl working drop, or leave it in FROM with --leave-working")
				}
				if err != nil {
					return err
				}
				if into[0].Project != "" {
					for _, rec := range from {
						if rec.file == "" {
							continue
						}
						rec.Project = into[0].Project
						err = errors.Join(err, registry.set(rec.file, rec))
					}
				}
				if a.Document != nil {
					a.Document.Member("merged", done.Memories)
					a.Document.Member("notes", done.Notes)
					return err
				}
				notes := ""
				if done.Notes > 0 {
					notes = " and " + cli.Count(done.Notes, "note", "notes")
				}
				fmt.Fprintf(a.Out, "%s%s went from %s into %s\n", cli.Count(done.Memories, "memory", "memories"), notes,
					from[0].Project, cli.PrintableID(args[1]))
				return err
			})
		}),
	}
	c.Flags().BoolVar(&o.LeaveWorking, "leave-working", false, "leave the working memory of FROM where it is")
	return c
}
