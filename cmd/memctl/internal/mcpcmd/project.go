package mcpcmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/projectcmd"
	"github.com/varve-db/varve/mcpserver"
)

// projectOf returns the function by which the server determines the project of a client. named is the project that the
// user named with --project, or "". Without a named project, the project is that of the first root (a folder that the
// client offers). If the client offers no root, it is the project of the current folder, if this folder is in a
// repository; otherwise there is no project.
func projectOf(a *cli.App, command, named string) (func(context.Context, mcpserver.Origin) (mcpserver.Project, error),
	error) {
	if named == "" {
		named = a.Getenv(projectcmd.Variable)
	}
	if v := projectcmd.Unexpanded(named); v != "" {
		return nil, cli.Usagef(command, "--project is %s, and the variable %s in it was not expanded: give the name "+
			"itself", named, v)
	}
	registry, finder := projectcmd.Of(a)
	return func(_ context.Context, of mcpserver.Origin) (mcpserver.Project, error) {
		roots := of.Roots
		if named == projectcmd.None {
			return mcpserver.Project{}, nil
		}
		dir, offered := "", len(roots) > 0
		if offered {
			dir = roots[0]
		} else {
			var err error
			if dir, err = a.Getwd(); err != nil {
				return mcpserver.Project{}, fmt.Errorf("finding the current folder: %w", err)
			}
		}
		if v := projectcmd.Unexpanded(dir); v != "" && offered {
			return mcpserver.Project{}, fmt.Errorf("the client's root is %s, and the variable %s in it was not "+
				"expanded: %w → start the server with --project NAME", cli.PrintableID(dir), v, varve.ErrInvalid)
		}
		place, err := finder.Place(dir, offered || named != "")
		if err != nil {
			return mcpserver.Project{}, err
		}
		var rec projectcmd.Record
		switch {
		case named != "":
			rec, err = registry.OfName(named, place)
		case place == "":
			return mcpserver.Project{}, nil
		default:
			rec, err = registry.OfPlace(place)
		}
		var other *projectcmd.NotJoinedError
		if errors.As(err, &other) {
			err = fmt.Errorf("%w → the user can permit it: memctl project join %s %s", err,
				cli.ShellQuote(other.Name), cli.ShellQuote(dir))
		}
		return mcpserver.Project{ID: rec.Project, Name: rec.Name}, err
	}, nil
}
