package main

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/locate"
	"github.com/varve-db/varve/internal/vfs"
)

func initCommand(a *cli.App) *cobra.Command {
	var segment int
	var shared string
	c := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Create a store",
		Long: `Create a store in DIR, or in the folder that --store or VARVE_STORE names, or in ./storage.
An existing store is not changed.

Only you may use a new store. With --shared=group all users of a group may use it: the folder gets
mode 2770 and files in it get mode 660, whatever the umask. If the folder exists, its group is used,
otherwise your group. An existing folder must belong to you or to root, because another owner could
read the files of the store.`,
		Example: "  memctl init\n  memctl init ~/agent/memory\n  memctl init --shared=group /srv/memory",
		Args:    cobra.MaximumNArgs(1),
		RunE: a.Do(func(cmd *cobra.Command, args []string) error {
			if err := (&varve.Options{SegmentSize: segment}).Validate(); err != nil {
				want := err.Error()
				if field := (*varve.FieldError)(nil); errors.As(err, &field) && field.Limit != "" {
					want = "must be " + field.Limit + " (bytes)"
				}
				return cli.Usagef(cmd.CommandPath(), "--segment-size %d: %s", segment, want)
			}
			dir := cmp.Or(a.Named(), cli.StoreFolder)
			if len(args) == 1 {
				if a.Store != "" && filepath.Clean(a.Store) != filepath.Clean(args[0]) {
					return cli.Usagef(cmd.CommandPath(), "two different folders are given, %s and --store %s: give "+
						"only one", args[0], a.Store)
				}
				dir = args[0]
			}
			if len(args) == 0 && a.Named() == "" {
				if err := notFound(a, dir); err != nil {
					return err
				}
			}
			if dir == "" {
				return cli.Usagef(cmd.CommandPath(),
					"the path of the folder is empty: give a path, or omit the argument")
			}
			if shared != "user" && shared != "group" {
				return cli.Usagef(cmd.CommandPath(), "--shared=%s: must be user or group", shared)
			}
			made := !cli.IsStore(dir)
			if made && shared == "user" && cmd.Flags().Changed("shared") && vfs.IsShared(vfs.OS(), dir) {
				return cli.WithFix(fmt.Errorf("%s is open to its group: %w", dir, varve.ErrInvalid),
					"give the path of another folder, or first remove the rights of the group: chmod g-rwxs "+
						cli.ShellPath(dir))
			}
			if shared == "group" && !made && !vfs.IsShared(vfs.OS(), dir) {
				return cli.WithFix(fmt.Errorf("%s is already a store that is not shared with the group of its folder: %w", dir,
					varve.ErrInvalid),
					"while no process uses it: chmod -R g+rwX "+cli.ShellPath(dir)+" && find "+cli.ShellPath(dir)+
						" -type d -exec chmod g+s {} +")
			}
			sized := func(o *varve.Options) { o.SegmentSize, o.Shared = segment, shared == "group" }
			return a.WithIn(cmd.Context(), dir, cli.Create, sized, func(st *varve.Store) error {
				path, err := filepath.Abs(dir)
				if err != nil {
					return fmt.Errorf("finding the path of %s: %w", dir, err)
				}
				a.Document.Member("store", path)
				a.Document.Member("created", made)
				fits := st.Health(cmd.Context()).Space.Fits
				a.Document.Member("fits", fits)
				if !made {
					a.Say("%s is already a store; nothing was changed", path)
					return nil
				}
				room := ""
				if fits > 0 {
					room = ", with room for about " + cli.Count(int(fits), "memory", "memories")
				}
				a.Say("created a store in %s%s", path, room)
				if found, err := a.Locate(); err != nil || !sameFolder(found, dir) {
					a.Say("to use this store, give --store %s with each command, or run once: export %s=%s",
						cli.ShellPath(dir), cli.StoreVariable,
						cli.ShellPath(path))
				}
				return nil
			})
		}),
	}
	c.Flags().IntVar(&segment, "segment-size", 0,
		"size of a segment of the log in `bytes`; one commit can use at most half of a segment (default 67108864)")
	c.Flags().StringVar(&shared, "shared", "user", "who may use a new store: `mode` user (you alone) or group")
	return c
}

// notFound returns an error if memctl must not create a store in the folder dir: the folder belongs to another user,
// or is a link, which may have come with a cloned project. It is called only if the user has named no folder, so that
// memctl has chosen dir.
func notFound(a *cli.App, dir string) error {
	here, err := a.Getwd()
	if err != nil {
		return fmt.Errorf("finding the current folder: %w", err)
	}
	return a.Admit(locate.Storage, filepath.Join(here, dir),
		"to create the store in this folder, give its path: memctl init "+cli.ShellPath(dir))
}

func sameFolder(a, b string) bool {
	x, err := filepath.Abs(a)
	if err != nil {
		return false
	}
	y, err := filepath.Abs(b)
	return err == nil && x == y
}
